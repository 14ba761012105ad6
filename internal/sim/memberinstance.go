package sim

import (
	"cmp"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
)

var (
	turnsOverSeveral = count.New("turns_over_several_inputs", "turns over several inputs")
	messagesDropped  = count.New("messages_that_found_no_room", "messages without room")
	messagesHeldUp   = count.New("messages_held_up", "messages held up")
)

// memberInstance is one instance on a running member. In production it has an event loop. The code
// of production decides its turns. All instances of a member share its disk, state machine and
// clients.
type memberInstance struct {
	// notes tell the judge of bodies about records. They are called when the outbox's records are
	// handed to the disk.
	notes    []func() error
	m        *Member
	instance protocol.InstanceID
	judges   *judge.Instance
	inst     *instance.Instance
	hosted   *instance.Hosted // nil if it was retired in an earlier life
	sender   instance.Sender
	witness  *witness

	// What waits for the next turn, as in the inbox of an event loop.
	inputs []protocol.Input
	bytes  int // of messages in inputs
	jobs   []func()
	reads  intake.ReadQueue
	tick   bool
	news   bool // of this member's bodies
	woken  bool // a turn is planned
	within bool // a turn has begun: the process is frozen in it, or the instance is carrying it out

	load      instance.Load
	status    *protocol.Status
	submitted uint64         // the last step whose records were handed over
	durable   uint64         // the last step that is durable
	noted     protocol.Index // the commit index that is on the disk
	noting    protocol.Index // the commit index that is being written
	recorded  uint64         // the last submitted step that had records
	unwritten time.Duration  // since when records have waited for the disk, or later, by the member's clock; 0: none wait
	asked     protocol.Index // up to here the log was to be cut at most, or 0
	ticked    bool           // it has had a tick
	ended     bool           // it was retired, and now only holds bodies
	brief     bool           // it leads, and is cut off when it first decides something
	wish      time.Duration  // when the core is woken, by the member's clock; 0: no such turn is planned
	prompt    prompt         // on a leader: what it is to commit next
}

// open makes the member's parts of all instances from what is on its disk.
func (m *Member) open(r *running, dir *datadir.Opened) error {
	r.instances = lifecycle.NewInstances[*memberInstance](dir.Instances)
	r.instances.Mutant = m.w.set.mutant()
	for _, l := range dir.Instances.InForce {
		if err := m.w.court.Of(l.Instance).Ledger.Start(m.judged(), m.w.court.Found(l.Recovered)); err != nil {
			return err
		}
	}
	if err := m.openBodies(r, dir); err != nil {
		return err
	}
	if err := r.instances.Start(instancesHost{m, r}); err != nil {
		return err
	}
	r.handshakes.Begin(m.clock(), m.w.set.Election, dir.Instances.InForce, m.given)
	r.silent = r.handshakes.Waits(m.clock()) > 0
	r.memberInstance = r.inForce[0]
	return m.judgeRetired(r)
}

// judgeRetired tells the judges of retired instances which bodies the member holds of them.
func (m *Member) judgeRetired(r *running) error {
	for _, c := range m.w.court.All {
		if m.strange() || r.instances.Pending(c.ID) || m.among(r.inForce, c.ID) != nil {
			continue
		}
		if err := c.Bodies.Start(m.judged(), m.found(r.body.store, c.ID)); err != nil {
			return err
		}
	}
	return nil
}

func newMemberInstance(m *Member, instance protocol.InstanceID, c *judge.Instance) *memberInstance {
	return &memberInstance{m: m, instance: instance, judges: c}
}

// begin makes the instance from what was recovered.
func (s *memberInstance) begin(session protocol.Session, rec *protocol.Recovered) error {
	m, set := s.m, s.m.own
	core, err := set.newCore(m.id, s.instance, session, *rec)
	if err != nil {
		return err
	}
	s.witness = newWitness(s, core)
	config := instance.InstanceConfig{
		Self: m.id, Instance: s.instance, Session: session,
		RetryAfter: set.Election, GiveUp: set.GiveUp, Depth: set.Depth, ForwardBytes: set.Core.MaxInflightBytes, Backlog: set.Backlog, Codec: m.w.set.codec(),
		Mutant: set.mutant(),
	}
	if set.woven() {
		config.Woven = rec
	}
	s.inst = instance.NewInstance(config, s.witness)
	s.hosted = instance.NewHosted(instance.HostedConfig{
		Self: m.id, Instance: s.instance, Heartbeat: set.Heartbeat, Election: set.Election, Leaders: set.Core.Leaders, Keyed: set.Keyed,
		KeepLogBytes: set.KeepLogBytes, Mutant: set.mutant(),
	}, instance.Calls{Now: m.clock, Siblings: func() instance.Siblings { return m.crew }, Source: s, Rounds: s}, s.inst)
	s.sender = instance.Sender{
		Instance: s.instance, Codec: config.Codec, Links: s, Now: m.clock,
		LargeMessage: cmp.Or(set.LargeMessage, instance.LargeMessage), LargeFor: instance.LargeFor,
	}
	s.status = s.hosted.Status()
	return nil
}

// step adds an input to the next turn of the instance.
func (s *memberInstance) step(in protocol.Input) {
	if s.m.up && !s.ended {
		s.inputs = append(s.inputs, in)
		s.wake()
	}
}

// message is step for a message from a link. The limit of the inbox may refuse it.
func (s *memberInstance) message(msg *protocol.Message, bytes int) {
	m := s.m
	if s.ended {
		return
	}
	limit := intake.InboxLimit{All: m.own.InboxBytes, Share: m.own.InboxBytes / 8}
	if m.own.InboxBytes > 0 && !limit.Takes(m.inbox+bytes, s.bytes, bytes, len(m.inForce)) {
		m.w.Count(messagesDropped)
		m.w.net.Link(msg.From, m.id).Wrongs++
		return
	}
	s.bytes += bytes
	m.inbox += bytes
	s.step(msg)
}

// do adds a job to the next turn of the instance.
func (s *memberInstance) do(job func()) {
	s.jobs = append(s.jobs, job)
	s.wake()
}

// wake plans a turn of the instance soon.
func (s *memberInstance) wake() {
	if !s.woken && !s.ended && s.hosted != nil && !s.m.silent {
		s.woken = true
		s.m.later(s.m.w.hop(), s.turn)
	}
}

// turn takes in all that waits, and carries out what follows from it.
func (s *memberInstance) turn() {
	if s.take(); s.m.up {
		s.finish()
	}
}

// take is the first half of a turn.
func (s *memberInstance) take() {
	m := s.m
	h := s.look()
	m.inbox -= s.bytes
	s.inputs, s.jobs, s.bytes, s.tick, s.woken = nil, nil, 0, false, false
	s.within, s.ticked = true, s.ticked || h.Tick
	if len(h.Inputs) > 1 {
		m.w.Count(turnsOverSeveral)
	}
	held := s.inst.HeldUp()
	s.hosted.Take(h)
	m.w.Events.Add(messagesHeldUp, int(s.inst.HeldUp()-held))
	if h.Tick && s == m.inForce[0] {
		for _, r := range m.progress.ExpiredTokens(m.clock()) {
			r.Done(r.Err())
		}
	}
}

// look reads what a turn takes in.
func (s *memberInstance) look() *instance.Happened {
	m := s.m
	h := &instance.Happened{
		AppliedBytes: m.queue.Total(), Saved: &m.saves, Tick: s.tick,
		Durable: s.durable, Inputs: s.inputs, Jobs: s.jobs,
	}
	h.Added, h.Applied, h.Active = m.progress.Of(s.instance)
	if s.tick {
		h.Random = m.w.Rand.Uint64()
		h.At, h.Configs = m.progress.At()
		if s == m.inForce[0] {
			h.Expired = m.proposals.Expired(m.clock(), m.own.GiveUp)
			if h.Named = s.hosted.NamesDue(); h.Named {
				h.Unnamed = m.handshakes.Publish(s.status)
			}
		}
	}
	if s.news {
		s.news = false
		h.Bodies, h.BodyNews = m.body.kept.News(s.instance)
	}
	return h
}

// finish is the second half of a turn.
func (s *memberInstance) finish() {
	m := s.m
	for t := s.hosted.Next(); t != nil; t = s.hosted.Next() {
		s.carry(t)
	}
	due := s.hosted.Due()
	s.within = false
	switch {
	case !m.up:
	case m.condemned != nil:
		m.fail(m.condemned)
	case s.hosted.Ended():
		s.ended = true
		m.instances.Drop(s.instance)
		m.inbox -= s.bytes
	case due > 0:
		s.alarm(due)
	}
}

// alarm has a turn begin when it is due, and no earlier. A core's wish to be woken takes the place of
// the one before.
func (s *memberInstance) alarm(due time.Duration) {
	m := s.m
	wish := due == s.inst.WakeAt()
	if wish && due == s.wish {
		return // it is planned
	}
	ring := s.wake
	if wish {
		s.wish = due
		ring = func() {
			if s.wish == due {
				s.wish = 0 // if it is early, because the clock became slower, another one is planned
				s.wake()
			}
		}
	}
	m.later(time.Duration(max(0, float64(due-m.clock()))/m.rate)+1, ring)
}

// leads reports whether the member leads the instance.
func (s *memberInstance) leads() bool { return s.witness.status.Role == protocol.Leader }

type entryError struct{ err error }

func (e *entryError) Error() string { return "entries to send: " + e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

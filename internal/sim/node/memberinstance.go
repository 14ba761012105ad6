package node

import (
	"cmp"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
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
	ticksLeftOut     = count.New("ticks_left_out", "ticks left out of quiet instances")
)

// MemberInstance is one instance on a running member. It replaces the event loop of production, whose code runs its
// turns. All instances of a member share its disk, state machine and clients.
type MemberInstance struct {
	// notes report records to the judge of bodies. They are called when the outbox's records are passed to the disk.
	notes    []func() error
	Member   *Member
	Instance protocol.InstanceID
	Judges   *judge.Instance
	Inst     *instance.Instance
	Hosted   *instance.Hosted // nil if it was retired in an earlier incarnation
	sender   instance.Sender
	Witness  *Witness

	// Input of the next turn, as in the inbox of an event loop.
	inputs []protocol.Input
	bytes  int // of messages in inputs
	jobs   []func()
	reads  intake.ReadQueue
	tick   bool
	pace   time.Duration // the interval of its ticks
	paceAt time.Duration // when its last tick was, or that interval began, by the member's clock
	news   bool          // of this member's bodies
	woken  bool          // a turn is scheduled
	within bool          // a turn has begun: the process is frozen in it, or the instance executes it

	load      instance.Load
	status    *protocol.Status
	durable   uint64         // the last step that is durable
	Noted     protocol.Index // the commit index that is on the disk
	noting    protocol.Index // the commit index that is being written
	recorded  uint64         // the last submitted step that had records
	unwritten time.Duration  // time since which records wait for the disk, or later, by the member's clock; 0: none wait
	Asked     protocol.Index // the highest index up to which a cut of the log was requested, or 0
	ticked    bool           // it has had a tick
	ended     bool           // it was retired, and now only holds bodies
	Brief     bool           // it leads, and is cut off when it first decides something
	wish      time.Duration  // when the core is woken, by the member's clock; 0: no such turn is scheduled
	prompt    prompt         // on a leader: the next entry to commit
}

// open creates the member's parts of all instances from its disk.
func (m *Member) open(r *Running, dir *datadir.Opened) error {
	r.instances = lifecycle.NewInstances[*MemberInstance](dir.Instances)
	r.instances.Mutant = m.Env.Set.MutantName()
	for _, l := range dir.Instances.InForce {
		j := m.Env.Court.Of(l.Instance)
		if err := j.Ledger.Start(m.Judged(), j.Found(l.Recovered)); err != nil {
			return err
		}
	}
	if err := openBodies(m, r, dir); err != nil {
		return err
	}
	if err := r.instances.Start(instancesHost{m, r}); err != nil {
		return err
	}
	m.Env.Violate(m.ID, m.judgeEnded(r, dir.Instances.InForce))
	r.Handshakes.Begin(m.Clock(), m.Env.Set.Election, dir.Instances.InForce, m.Given)
	r.silent = r.Handshakes.Waits(m.Clock()) > 0
	return judgeRetired(m, r)
}

// judgeRetired reports to the judges of retired instances which of their bodies the member has.
func judgeRetired(m *Member, r *Running) error {
	for _, c := range m.Env.Court.All {
		if m.Strange() || r.instances.Pending(c.ID) || m.Among(r.InForce, c.ID) != nil {
			continue
		}
		if err := c.Bodies.Start(m.Judged(), found(m.Disk, r.Body.Store, c.ID)); err != nil {
			return err
		}
	}
	return nil
}

func newMemberInstance(m *Member, instance protocol.InstanceID, c *judge.Instance) *MemberInstance {
	return &MemberInstance{Member: m, Instance: instance, Judges: c}
}

// begin creates the instance from the recovered log.
func (s *MemberInstance) begin(session protocol.Session, log *member.InstanceLog, core protocol.Core) {
	m, set, rec := s.Member, s.Member.Own, log.Recovered
	s.Witness = newWitness(s, core)
	t := &m.tuning
	config := instance.InstanceConfig{
		Self: m.ID, Instance: s.Instance, Session: session,
		RetryAfter: t.Election, GiveUp: t.GiveUp, Depth: set.Depth, ProposedBytes: set.Core.MaxInflightBytes,
		Backlog: set.Backlog, Codec: s.Judges.Core.Codec, Decided: s.Judges.Core.Judged.DecidedOnly,
		Mutant: set.MutantName(),
	}
	if set.mergesWith(s.Judges.Core) {
		begin := set.begin()
		config.Merged, config.Alone = rec, begin.BeginsAlone(s.Instance)
	}
	s.Inst = instance.NewInstance(config, s.Witness)
	s.Hosted = instance.NewHosted(instance.HostedConfig{
		Self: m.ID, Instance: s.Instance, Heartbeat: t.Heartbeat, Election: t.Election, Leaders: t.Leaders, Keyed: set.Keyed,
		KeepLogBytes: set.KeepLogBytes, Closed: log.Closed, Stands: log.First == m.ID, Mutant: set.MutantName(),
	}, instance.Calls{Now: m.Clock, Siblings: func() instance.Siblings { return m.Crew }, Source: s, Rounds: s}, s.Inst)
	s.sender = instance.Sender{
		Stream: instance.StreamAt(log.Place), Codec: config.Codec, Links: s, Now: m.Clock,
		LargeMessage: cmp.Or(set.LargeMessage, instance.LargeMessage), LargeFor: instance.LargeFor,
	}
	s.status = s.Hosted.Status()
}

// Step adds an input to the next turn of the instance.
func (s *MemberInstance) Step(in protocol.Input) {
	if s.Member.Up && !s.ended {
		s.inputs = append(s.inputs, in)
		s.wake()
	}
}

// message is Step for a message from a link. The limit of the inbox may refuse it.
func (s *MemberInstance) message(msg *protocol.Message, bytes int) {
	m := s.Member
	if s.ended {
		return
	}
	limit := intake.NewInboxLimit(m.Own.InboxBytes)
	if m.Own.InboxBytes > 0 && !limit.Takes(m.inbox+bytes, s.bytes, bytes, len(m.InForce)) {
		m.Env.Count(messagesDropped)
		m.Env.Net.Link(msg.From, m.ID).Wrongs++
		return
	}
	s.bytes += bytes
	m.inbox += bytes
	s.Step(msg)
}

// Do adds a job to the next turn of the instance.
func (s *MemberInstance) Do(job func()) {
	s.jobs = append(s.jobs, job)
	s.wake()
}

// ticks reports whether the instance has a tick when the member has one.
func (s *MemberInstance) ticks() bool {
	m := s.Member
	if s.pace > m.Own.Tick && m.Clock()-s.paceAt < s.pace {
		m.Env.Count(ticksLeftOut)
		return false
	}
	return true
}

// setPace takes over the interval of ticks after a turn.
func (s *MemberInstance) setPace() {
	if next := s.Hosted.Ticks(s.Member.Own.Tick); next != s.pace {
		s.pace, s.paceAt = next, s.Member.Clock()
	}
}

// wake schedules a turn of the instance soon.
func (s *MemberInstance) wake() {
	if !s.woken && !s.ended && s.Hosted != nil && !s.Member.silent {
		s.woken = true
		s.Member.Later(s.Member.Env.hop(), s.turn)
	}
}

// turn processes all waiting input, and executes the output.
func (s *MemberInstance) turn() {
	if s.take(); s.Member.Up {
		s.finish()
	}
}

// take is the first half of a turn.
func (s *MemberInstance) take() {
	m := s.Member
	h := s.look()
	m.inbox -= s.bytes
	s.inputs, s.jobs, s.bytes, s.tick, s.woken = nil, nil, 0, false, false
	s.within, s.ticked = true, s.ticked || h.Tick
	if len(h.Inputs) > 1 {
		m.Env.Count(turnsOverSeveral)
	}
	held := s.Inst.HeldUp()
	s.Hosted.Take(h)
	if h.Tick {
		s.paceAt = m.Clock()
	}
	m.Env.Events.Add(messagesHeldUp, int(s.Inst.HeldUp()-held))
	if h.Tick && s == m.InForce[0] {
		for _, r := range m.Progress.ExpiredTokens(m.Clock()) {
			r.Done(r.Err())
		}
	}
}

// look reads the state of the member that a turn needs.
func (s *MemberInstance) look() *instance.Happened {
	m := s.Member
	h := &instance.Happened{
		AppliedBytes: m.Queue.Total(), Saved: &m.saves, Tick: s.tick,
		Durable: s.durable, Inputs: s.inputs, Jobs: s.jobs,
	}
	h.Added, h.Applied, h.Active = m.Progress.Of(s.Instance)
	if s.tick {
		h.Random = m.Env.Rand.Uint64()
		h.At, h.Configs = m.Progress.At()
		h.Drained = m.Drained()
		if s == m.InForce[0] {
			h.Expired = m.Proposals.Expired(m.Clock(), m.Own.GiveUp)
			if h.Named = s.Hosted.NamesDue(); h.Named {
				h.Unnamed = m.Handshakes.Publish(s.status, m.Env.Now().Milliseconds(),
					cluster.Shown{Version: m.version, Format: m.newest})
			}
		}
	}
	if s.news {
		s.news = false
		h.Bodies, h.BodyNews = m.Body.kept.News(s.Instance)
	}
	return h
}

// finish is the second half of a turn.
func (s *MemberInstance) finish() {
	m := s.Member
	for t := s.Hosted.Next(); t != nil; t = s.Hosted.Next() {
		s.carry(t)
	}
	due := s.Hosted.Due()
	s.within = false
	s.setPace()
	switch {
	case !m.Up:
	case m.condemned != nil:
		m.fail(m.condemned)
	case s.Hosted.Ended():
		s.ended = true
		m.instances.Drop(s.Instance)
		m.inbox -= s.bytes
	case due > 0:
		s.alarm(due)
	}
}

// alarm schedules the turn at which the core asked to be woken. A later request of the core replaces the earlier one.
func (s *MemberInstance) alarm(due time.Duration) {
	m := s.Member
	wish := due == s.Inst.WakeAt()
	if wish && due == s.wish {
		return // it is scheduled
	}
	ring := s.wake
	if wish {
		s.wish = due
		ring = func() {
			if s.wish == due {
				s.wish = 0 // if it is early, because the clock slowed down, another one is scheduled
				s.wake()
			}
		}
	}
	m.Later(time.Duration(max(0, float64(due-m.Clock()))/m.rate)+1, ring)
}

// Leads reports whether the member leads the instance.
func (s *MemberInstance) Leads() bool { return s.Witness.Latest.Role == protocol.Leader }

type entryError struct{ err error }

func (e *entryError) Error() string { return "entries to send: " + e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

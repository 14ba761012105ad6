package scale

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// loop is an instance's event loop on a member. [instance.Hosted] executes a turn. The loop counts the turn's costs
// (see carry.go), and publishes its output when that time is over.
type loop struct {
	m        *node
	instance protocol.InstanceID
	inst     *instance.Instance
	hosted   *instance.Hosted
	sender   instance.Sender
	thread   *thread

	// Input of the next turn.
	inputs  []protocol.Input
	jobs    []func()
	bytes   int           // of messages in inputs
	tick    bool          // a tick is due
	durable uint64        // the last step that is durable
	told    uint64        // the last step that the instance knows to be durable; ≤ durable
	timer   time.Duration // when the thread is woken for waiting proposals; if past, nothing is scheduled

	saved  member.Saved // empty: the model writes no snapshot
	load   instance.Load
	status *protocol.Status

	// The current turn: its costs, the number of entries that it commits, the message that it frames, and its output.
	cost      spend
	committed int
	framed    *protocol.Message
	frames    []frame
	logs      []logWork
	commits   []intake.CommittedEntries
	wakes     []*loop
	taken     []protocol.Input // a buffer
}

// logWork is a turn's work for the log: records of all steps up to seq, or with cut the end of the deleted part of
// the log.
type logWork struct {
	records []wal.Record
	seq     uint64
	cut     protocol.Index
}

// As in braid.Options.
const (
	heartbeat       = 100 * time.Millisecond
	electionTimeout = time.Second
	tickEvery       = heartbeat / 10
	giveUp          = 5*time.Second + 5*electionTimeout
)

func newLoop(m *node, id protocol.InstanceID, meta *member.Meta) (*loop, error) {
	rec := protocol.Recovered{Base: meta.Base(id)}
	core, err := m.w.newCore(m, id, rec)
	if err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	config := instance.InstanceConfig{
		Self: m.id, Instance: id, Session: m.session,
		RetryAfter: electionTimeout, GiveUp: giveUp, Depth: m.w.cfg.Depth, Backlog: instance.Backlog(m.w.cfg.Instances), Codec: m.w.protocol.Core.Codec,
		Decided: m.w.protocol.Core.Judged.DecidedOnly,
	}
	if m.w.begin.Merged() {
		config.Merged = &rec
	}
	l := &loop{m: m, instance: id}
	l.inst = instance.NewInstance(config, &billed{core, l})
	l.hosted = instance.NewHosted(instance.HostedConfig{
		Self: m.id, Instance: id, Heartbeat: heartbeat, Election: electionTimeout, Leaders: m.w.leaders, Keyed: m.w.begin.Keyed,
		KeepLogBytes: keepLogBytes,
	}, instance.Calls{Now: func() time.Duration { return m.w.now }, Siblings: func() instance.Siblings { return siblings{l} }, Source: l, Rounds: l}, l.inst)
	l.sender = instance.Sender{
		Stream: instance.StreamAt(int(id - protocol.FirstInstance)), Codec: config.Codec, Links: l,
		Now:          func() time.Duration { return m.w.now },
		LargeMessage: instance.LargeMessage, LargeFor: instance.LargeFor,
	}
	l.status = l.hosted.Status()
	l.thread = m.cpu.thread(fmt.Sprintf("instance %d", id), l.work, l.finish)
	return l, nil
}

// input adds an input to the next turn.
func (l *loop) input(in protocol.Input) {
	l.inputs = append(l.inputs, in)
	l.thread.wake()
}

// message is input for a message of the given size. If the inbox is full the message is dropped.
func (l *loop) message(m *protocol.Message, bytes int) {
	if !inboxLimit.Takes(l.m.inbox+bytes, l.bytes, bytes, len(l.m.loops)) {
		return
	}
	l.bytes += bytes
	l.m.inbox += bytes
	l.input(m)
}

var inboxLimit = intake.NewInboxLimit(intake.InboxBytes)

// do adds a job to the next turn.
func (l *loop) do(job func()) {
	l.jobs = append(l.jobs, job)
	l.thread.wake()
}

// work runs a turn with all waiting input. When costs are measured, each input has a turn of its own.
func (l *loop) work() spend {
	l.cost = 0
	if l.m.w.meter != nil {
		l.measure()
		return l.cost
	}
	t := l.takeAll()
	l.hosted.Take(l.look(&t))
	l.end()
	return l.cost
}

// end executes the output of the turn.
func (l *loop) end() {
	l.carryAll()
	if due := l.hosted.Due(); due > 0 {
		l.wakeAt(due)
	}
}

func (l *loop) carryAll() {
	for t := l.hosted.Next(); t != nil; t = l.hosted.Next() {
		l.carry(t)
	}
}

// takeAll removes all waiting input.
func (l *loop) takeAll() instance.Happened {
	l.taken, l.inputs = l.inputs, l.taken[:0]
	t := instance.Happened{Durable: l.durable, Inputs: l.taken, Jobs: l.jobs}
	if l.tick {
		t.Tick, t.Random = true, l.m.w.rng.Uint64()
	}
	l.m.inbox -= l.bytes
	l.told, l.jobs, l.tick, l.bytes = l.durable, nil, false, 0
	return t
}

// look adds the member's state that the turn needs.
func (l *loop) look(t *instance.Happened) *instance.Happened {
	known := l.m.apply.known
	t.Added, t.Applied, t.Active = known.Of(l.instance)
	t.AppliedBytes, t.Saved = l.m.apply.queue.Total(), &l.saved
	if t.Tick {
		t.At, t.Configs = known.At()
		if l == l.m.loops[0] {
			t.Expired = l.m.proposals.Expired(l.m.w.now, giveUp)
		}
	}
	return t
}

func (l *loop) wakeAt(due time.Duration) {
	w := l.m.w
	if l.timer <= w.now || due < l.timer {
		l.timer = due
		w.after(due-w.now, l.thread.wake)
	}
}

// finish publishes the results of the turn.
func (l *loop) finish() {
	m := l.m
	for _, f := range l.frames {
		m.link(f.msg.To, l.instance).send(f)
	}
	clear(l.frames)
	l.frames = l.frames[:0]
	for i := range l.logs {
		m.disk.submit(l, &l.logs[i])
	}
	clear(l.logs)
	l.logs = l.logs[:0]
	for _, c := range l.commits {
		m.apply.push(apply.ApplyItem{Commit: c})
	}
	clear(l.commits)
	l.commits = l.commits[:0]
	for _, o := range l.wakes {
		o.thread.wake()
	}
	l.wakes = l.wakes[:0]
}

// wrote reports that everything up to a step is durable.
func (l *loop) wrote(seq uint64, err error) {
	l.m.w.note(err)
	l.durable = max(l.durable, seq)
	l.thread.wake()
}

// ticks starts the ticks of the loop.
func (l *loop) ticks() {
	l.tick = true
	l.thread.wake()
	l.m.w.after(tickEvery, l.ticks)
}

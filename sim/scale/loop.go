package scale

import (
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// loop is an instance's event loop on a member, as in package replica. One turn takes in all that
// happened, accepts proposals, and carries out what follows.
type loop struct {
	m        *node
	instance protocol.InstanceID
	inst     *member.Instance
	clock    member.Clock
	thread   *thread
	leads    bool

	inputs  []protocol.Input // messages that wait
	tick    bool             // a tick is due
	durable uint64           // the last step that is durable
	told    uint64           // the last step that the instance knows to be durable; ≤ durable
	submits uint64           // the last step that the disk was given
	timer   time.Duration    // when the thread is woken for proposals that wait; if past, nothing is planned
	cut     protocol.Index   // where the log was last compacted

	// The results of a turn, until it ends.
	out     member.Outbox
	frames  []frame
	jobs    []job
	commits []member.CommittedEntries
	wake    []protocol.InstanceID
}

// cutEvery is how many entries a log keeps when it is compacted. Here they cost only memory.
const cutEvery = 1 << 14

func (l *loop) wakeIn(d time.Duration) {
	w := l.m.w
	if l.timer <= w.now || w.now+d < l.timer {
		l.timer = w.now + d
		w.after(d, l.thread.wake)
	}
}

func (l *loop) work() (cost spend) {
	w, c := l.m.w, &l.m.w.costs
	if l.durable > l.told {
		l.told = l.durable
		cost.on(c.Durable, l.step(meterDurable, protocol.Persisted{Seq: l.told}), 0)
	}
	l.receive(&cost)
	if l.tick {
		l.tick = false
		l.inst.Step(w.now, protocol.Tick{Random: w.rng.Uint64()}, &l.out)
		l.inst.Remind(w.now, heartbeat, l.m.weaver.Want(l.instance), &l.out)
		cost.on(c.Tick, 0, 0)
	}
	for again := true; again; {
		l.propose(&cost)
		l.weave(&cost)
		again = l.carryOut(&cost)
	}
	l.leads = l.inst.Core().Status().Role == protocol.Leader
	return cost
}

// receive gives the instance all messages that came. It gives them at once, or one after the other
// where costs are measured.
func (l *loop) receive(cost *spend) {
	w, before := l.m.w, len(l.out.Commit)
	answers := 0
	for _, in := range l.inputs {
		m := in.(*protocol.Message)
		append := m.Type == protocol.MsgAppend
		if append {
			cost.on(w.costs.Append, len(m.Entries), 0)
		} else {
			answers++
		}
		switch {
		case w.meter == nil:
		case append:
			l.step(meterAppend, m)
		default:
			l.step(meterAck, m)
		}
	}
	if w.meter == nil {
		l.inst.StepAll(&l.clock, l.inputs, &l.out)
	}
	if answers > 0 {
		cost.on(Cost{Once: w.costs.Ack.Once * float64(answers), Each: w.costs.Ack.Each}, len(l.out.Commit)-before, 0)
	}
	clear(l.inputs)
	l.inputs = l.inputs[:0]
}

// step gives the instance one input, and returns how many entries that committed.
func (l *loop) step(kind meterKind, in protocol.Input) (committed int) {
	w, before := l.m.w, len(l.out.Commit)
	began := w.meter.begin()
	l.inst.Step(w.now, in, &l.out)
	committed = len(l.out.Commit) - before
	n := committed
	if m, ok := in.(*protocol.Message); ok && kind == meterAppend {
		n = len(m.Entries)
	}
	w.meter.end(kind, n, began)
	return committed
}

// propose takes this member's batches as long as the instance accepts them.
func (l *loop) propose(cost *spend) {
	w, p := l.m.w, l.m.proposer
	if !l.leads {
		return
	}
	for bytes, full := p.waiting(); bytes > 0; bytes, full = p.waiting() {
		if ok, wait := l.inst.Room(w.now, bytes, full); !ok {
			if wait > 0 {
				l.wakeIn(wait)
			}
			return
		}
		b := p.take()
		batch := w.batch(b)
		began := w.meter.begin()
		l.inst.Propose(w.now, batch, &l.out)
		w.meter.end(meterPropose, 0, began)
		l.m.under[underKey{l.instance, batch.Entry.ID.Seq}] = b
		cost.on(w.costs.Propose, 0, b.bytes)
		w.tally.batches += w.one()
	}
}

func (l *loop) weave(cost *spend) {
	w := l.m.w
	if l.inst.Tail() == nil || !l.leads {
		return
	}
	skips := l.inst.Skips()
	if l.inst.Weave(w.now, l.m.weaver.Want(l.instance), &l.out); l.inst.Skips() > skips {
		cost.on(w.costs.Propose, 0, 0)
		w.tally.skips += w.one()
	}
}

// carryOut collects what must be done at the end of the turn. It reports whether there was
// anything, because finished work lets waiting proposals in.
func (l *loop) carryOut(cost *spend) bool {
	out := &l.out
	if out.Empty() && out.Seq == l.submits {
		return false
	}
	c := &l.m.w.costs
	for _, msg := range out.Send {
		f := newFrame(msg)
		cost.on(c.Frame, f.entries, f.bytes)
		l.frames = append(l.frames, f)
	}
	if out.Seq != l.submits {
		l.submits = out.Seq
		l.jobs = append(l.jobs, newJob(l, out.Seq, out.Persist))
	}
	committed := protocol.Index(0)
	if n := len(out.Commit); n > 0 {
		l.commits = append(l.commits, member.CommittedEntries{Instance: l.instance, Entries: out.Commit})
		committed = out.Commit[n-1].Index
	}
	out.Reset()
	l.compact(committed)
	return true
}

// compact sometimes cuts the front of the log, so that a long run needs no more memory than a short
// one.
func (l *loop) compact(committed protocol.Index) {
	if keep := committed - min(committed, cutEvery); keep > l.cut+cutEvery {
		l.cut = keep
		l.inst.Step(l.m.w.now, protocol.Compact{Index: keep}, &l.out)
	}
}

// finish hands on the results of the turn.
func (l *loop) finish() {
	m := l.m
	for _, f := range l.frames {
		m.links[f.msg.To-1][l.instance-1].send(f)
	}
	clear(l.frames)
	l.frames = l.frames[:0]
	if len(l.jobs) > 0 {
		m.disk.submit(l.jobs)
		l.jobs = l.jobs[:0]
	}
	if len(l.commits) > 0 {
		m.apply.queue = append(m.apply.queue, l.commits...)
		m.apply.thread.wake()
		clear(l.commits)
		l.commits = l.commits[:0]
	}
	if !m.w.cfg.Single {
		l.wake = m.weaver.Set(l.inst.Rounds(m.w.now), l.wake[:0])
		for _, i := range l.wake {
			m.loops[i-1].thread.wake()
		}
	}
	if m.load != nil {
		m.route()
	}
}

// ticks makes the loop tick from now on.
func (l *loop) ticks() {
	l.tick = true
	l.thread.wake()
	l.m.w.after(tickEvery, l.ticks)
}

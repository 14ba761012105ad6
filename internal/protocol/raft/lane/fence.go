package lane

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// The fence (docs/internals/lcr.md, 1.5 (d)) is between what members have acknowledged as accepted and a change of the
// voters. Before the change, a quorum promises to count for no generation so far, and says how far it holds lanes. What
// was accepted is among that, and comes into the log before the change. Afterwards a new generation begins.

// fenceCell is the cell in which a member keeps its promise.
const fenceCell = 0

// fencing is a leader's fence; zero if there is none.
type fencing struct {
	number uint64
	// change waits for the fence. until is when it is given up.
	change   *protocol.ProposeChange
	until    time.Duration
	promised Answers
	asked    time.Duration
	// done: the change is being made. beaten is what was committed a heartbeat before it was asked for.
	done   bool
	beaten protocol.Index
}

// Answers are what members said they hold of lanes, at a moment. A quorum suffices if the log has all
// that it holds. So no one waits for what is held only by a member that answered and is gone.
type Answers struct {
	by    []protocol.MemberID
	highs []answeredHigh
}

type answeredHigh struct {
	message.LaneHigh
	from protocol.MemberID
}

// Hear notes an answer. A later one of the same member adds to it.
func (a *Answers) Hear(from protocol.MemberID, highs []message.LaneHigh) {
	if !slices.Contains(a.by, from) {
		a.by = append(a.by, from)
	}
	for _, high := range highs {
		i := slices.IndexFunc(a.highs, func(h answeredHigh) bool { return h.from == from && h.Lane == high.Lane })
		if i < 0 {
			a.highs = append(a.highs, answeredHigh{high, from})
		} else if a.highs[i].High < high.High {
			a.highs[i].LaneHigh = high
		}
	}
}

// covers reports whether a member answered, and the log has all that it said it holds, as far as that can be made
// whole. What is missing is written there, or asked for.
func (l *Lanes) covers(v *View, a *Answers, id protocol.MemberID) bool {
	if !slices.Contains(a.by, id) {
		return false
	}
	all := true
	for i := range a.highs {
		if a.highs[i].from == id {
			all = (l.brought(v, a.highs[i].LaneHigh, id) || l.seen(v, a.highs[i].Lane, id)) && all
		}
	}
	return all
}

// fenced is this member's promise to count for no generation below number. It is durable when step is.
type fenced struct{ number, step uint64 }

// OnFence promises what a leader asks for.
func (l *Lanes) OnFence(v *View, m message.Message) {
	l.fence.promise(v, m.Round)
	v.Out.PostDurable(message.With(protocol.Message{Type: message.FenceResp, To: m.From, Term: v.Term},
		message.Part{Round: m.Round, Lanes: l.HeldHighs()}))
}

// promise keeps a promise, if it is more than was promised before.
func (f *fenced) promise(v *View, number uint64) {
	if number <= f.number || v.Settings.Mutant == MutantNoPromise {
		return
	}
	data := binary.LittleEndian.AppendUint64(make([]byte, cellHead, cellHead+8), number)
	v.Out.Record(protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: fenceCell, Data: data}})
	*f = fenced{number, v.Out.Seq}
}

// HeldHighs is how far this member holds lanes, on its disk or in writes to it.
func (l *Lanes) HeldHighs() (highs []message.LaneHigh) {
	for _, h := range l.held {
		if len(h.batches) > 0 {
			highs = append(highs, message.LaneHigh{Lane: h.lane, High: h.high()})
		}
	}
	return highs
}

// BehindFence reports whether a change may be made now as far as lanes are concerned. One of the members, or one that
// turns lanes off, waits for the fence, and is made then.
func (l *Lanes) BehindFence(v *View, in *protocol.ProposeChange,
	next *protocol.Config) (ready bool, reason protocol.Reason) {
	off := v.off(next)
	if l == nil || l.end.gen == 0 || !v.on() || !off && !members.Fenced(v.Members.Config, next) ||
		v.Settings.Mutant == MutantNoFence || off && v.Settings.Mutant == MutantOffUnfenced {
		return true, protocol.ReasonNone
	}
	f := &l.lead.fence
	switch {
	case f.done:
		return true, protocol.ReasonNone
	case f.change != nil:
		return false, protocol.ReasonChangePending
	default:
		own := *in
		*f = fencing{
			number: max(l.end.gen, l.lead.seen, l.fence.number) + 1, change: &own, until: v.Now + 2*v.Settings.ElectionTimeout,
			beaten: v.Beaten,
		}
		l.fence.promise(v, f.number)
		f.promised.Hear(v.Settings.Self, l.HeldHighs())
		l.askFence(v)
	}
	return false, protocol.ReasonNone
}

func (l *Lanes) askFence(v *View) {
	f := &l.lead.fence
	f.asked = v.Now
	v.Place.Uncode(&v.View) // so that no body that is not committed stands before the change
	for _, p := range v.Peers {
		if v.Members.Voters.Has(p.ID) {
			v.Out.Post(message.With(protocol.Message{Type: message.Fence, To: p.ID, Term: v.Term},
				message.Part{Round: f.number}))
		}
	}
}

// OnFenceResp takes in a promise to this leader's fence.
func (l *Lanes) OnFenceResp(v *View, m message.Message) {
	if l == nil {
		return
	}
	f := &l.lead.fence
	if f.change == nil || m.Round != f.number {
		return
	}
	f.promised.Hear(m.From, m.Lanes)
}

// fenceDone reports whether a quorum is behind the fence, and the log has all that it holds.
func (l *Lanes) fenceDone(v *View) bool {
	f := &l.lead.fence
	mutant := v.Settings.Mutant
	return v.Members.Voters.Agreed(func(id protocol.MemberID) uint64 {
		if own := l.fence.number >= f.number && l.fence.step <= v.Disk.Done; id == v.Settings.Self && !own &&
			mutant != MutantNoPromise {
			return 0
		}
		return bit(l.covers(v, &f.promised, id) || mutant == MutantFenceUncovered && slices.Contains(f.promised.by, id))
	}) == 1
}

// brought reports whether the log has a lane up to a number, or the lane is closed. If not, it is written there at
// once, and asked for if it is missing here.
func (l *Lanes) brought(v *View, high message.LaneHigh, from protocol.MemberID) bool {
	mark := l.end.of(high.Lane)
	if mark == nil || mark.to >= high.High {
		return true
	}
	h := l.hold(high.Lane)
	h.urgent = max(h.urgent, high.High)
	if h.high() < high.High && !h.partial(mark.to+1) && v.Now >= h.fetched+v.Settings.Heartbeat {
		h.fetched = v.Now
		l.fetch(v, from, h)
	}
	return false
}

// Fence continues with the fence, and returns the change that waits for it as soon as it can be made. The fence is
// given up after a while.
func (l *Lanes) Fence(v *View) *protocol.ProposeChange {
	if l.lead.fence.change == nil || v.Given < v.Commit {
		return nil // what is committed in this step was so under the old voters, and is handed over first
	}
	f := &l.lead.fence
	switch {
	case v.Now >= f.until:
		context := f.change.Context
		*f = fencing{}
		v.Out.Refuse(context, protocol.ReasonChangePending, v.Settings.Self)
	case l.fenceDone(v):
		f.done = true
		return f.change
	case v.Now >= f.asked+v.Settings.Heartbeat:
		l.askFence(v)
	}
	return nil
}

// EndFence forgets the fence: its change was made, or refused.
func (l *Lanes) EndFence() { l.lead.fence = fencing{} }

// Beaten is what was committed a heartbeat before the change was asked for that is being made behind a fence; false
// if none is.
func (l *Lanes) Beaten() (protocol.Index, bool) {
	if l == nil || !l.lead.fence.done {
		return 0, false
	}
	return l.lead.fence.beaten, true
}

// Generation lets members count acknowledgements again, under the voters of now, by the entry that is returned; false:
// they may, or not now. A leader that died may have left a fence, which ends so too.
func (l *Lanes) Generation(v *View) (e protocol.Entry, ok bool) {
	seen := max(l.lead.seen, l.fence.number)
	if l.lead.fence.change != nil || !v.Ready || v.Handing || v.Commit < v.First || v.Members.At > v.Commit ||
		v.Members.Config.Joint() || !v.on() ||
		l.end.open && seen <= l.end.gen {
		return e, false
	}
	return protocol.NewGeneration(max(l.end.gen, seen) + 1), true
}

// Cover reports whether a quorum of a set is among those that answered, of which the log has all that they said they
// hold.
func (l *Lanes) Cover(v *View, set quorum.Set, a *Answers) bool {
	return set.Agreed(func(id protocol.MemberID) uint64 { return bit(l.covers(v, a, id)) }) != 0
}

// Accept says which batches of this member's lane are accepted: its own disk has them, and a quorum said under the
// generation active that it has them. A member that promised a fence counts no more. The leader need not be known, nor
// need there be one.
func (l *Lanes) Accept(v *View) {
	if l == nil {
		return
	}
	o := &l.own
	if len(o.ids) == 0 || !l.counting(v) {
		return
	}
	h := l.hold(o.lane)
	own := h.durable(v.Disk)
	if v.Settings.Mutant == MutantAcceptUnsynced {
		own = h.high()
	}
	to := v.Members.Electorate(v.Given).Agreed(func(id protocol.MemberID) uint64 {
		if id == v.Settings.Self {
			return own
		}
		for _, t := range o.to {
			if t.id == id {
				return t.counted
			}
		}
		if v.Settings.Mutant == MutantAcceptAlone {
			return math.MaxUint64
		}
		return 0
	})
	if v.Settings.Mutant == MutantAcceptAlone {
		to = own
	}
	to = min(to, own)
	for o.accepted = max(o.accepted, h.base); o.accepted < to && o.proven(v, h, o.accepted+1); o.accepted++ {
		v.Out.Accepted = append(v.Out.Accepted, h.batches[o.accepted-h.base].ID)
	}
}

// counting reports whether acknowledgements count: the generation is active, and this member has not promised a fence.
func (l *Lanes) counting(v *View) bool {
	fenced := l.fence.number > l.own.gen && v.Settings.Mutant != MutantNoPromise
	return l.confirmed.open && l.own.gen == l.confirmed.gen && !fenced
}

// countAnew begins to count acknowledgements under the generation active.
func (l *Lanes) countAnew(v *View) {
	if l.own.gen == l.confirmed.gen {
		return
	}
	l.own.gen = l.confirmed.gen
	for _, t := range l.own.to {
		t.counted = 0
	}
	if len(l.own.ids) > 0 {
		for _, t := range l.own.to {
			l.own.askTarget(v, t)
		}
	}
}

// askTarget asks a member how far it holds the lane.
func (o *ownLane) askTarget(v *View, t *target) {
	v.Out.Post(message.With(protocol.Message{Type: message.Lane, To: t.id, Context: message.Stamp(v.Now)},
		message.Part{ID: protocol.ProposalID{Session: o.lane}, Round: o.gen}))
}

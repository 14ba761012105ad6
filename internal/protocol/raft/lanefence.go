package raft

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
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
	promised answers
	asked    time.Duration
	// done: the change is being made. beaten is what was committed a heartbeat before it was asked for.
	done   bool
	beaten protocol.Index
}

// answers are what members said they hold of lanes, at a moment. Any quorum suffices of which the log has all that it
// holds. So no one waits for what only a member holds that answered and is gone.
type answers struct {
	by    []protocol.MemberID
	highs []answeredHigh
}

type answeredHigh struct {
	message.LaneHigh
	from protocol.MemberID
}

// hear notes an answer. A later one of the same member adds to it.
func (a *answers) hear(from protocol.MemberID, highs []message.LaneHigh) {
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
func (r *Raft) covers(a *answers, id protocol.MemberID) bool {
	if !slices.Contains(a.by, id) {
		return false
	}
	all := true
	for i := range a.highs {
		if a.highs[i].from == id {
			all = (r.brought(a.highs[i].LaneHigh, id) || r.seenOf(a.highs[i].Lane, id)) && all
		}
	}
	return all
}

// fenced is this member's promise to count for no generation below number. It is durable when step is.
type fenced struct{ number, step uint64 }

// promiseFence keeps a promise, if it is more than was promised before.
func (r *Raft) promiseFence(number uint64) {
	f := &r.lanes.fence
	if number <= f.number || r.cfg.Mutant == MutantLaneNoPromise {
		return
	}
	data := binary.LittleEndian.AppendUint64(make([]byte, laneCellHead, laneCellHead+8), number)
	r.out.Record(protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: fenceCell, Data: data}})
	*f = fenced{number, r.out.Seq}
}

func onFence(r *Raft, m message.Message) {
	if r.lanes == nil {
		return
	}
	r.heardLeader(m)
	r.promiseFence(m.Round)
	r.release(message.With(protocol.Message{Type: message.FenceResp, To: m.From}, message.Part{Round: m.Round, Lanes: r.heldHighs()}))
}

// heldHighs is how far this member holds lanes, on its disk or on the way to it.
func (r *Raft) heldHighs() (highs []message.LaneHigh) {
	for _, h := range r.lanes.held {
		if len(h.batches) > 0 {
			highs = append(highs, message.LaneHigh{Lane: h.lane, High: h.high()})
		}
	}
	return highs
}

// behindFence reports whether a membership change may be made now as far as lanes are concerned. If not,
// it waits for the fence, and is made then.
func (r *Raft) behindFence(in *protocol.ProposeChange, next *protocol.Config) (ready bool, reason protocol.Reason) {
	l := r.lanes
	if l == nil || l.end.gen == 0 || !members.Fenced(r.members.Config, next) || r.cfg.Mutant == MutantLaneNoFence {
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
			number: max(l.end.gen, l.lead.seen, l.fence.number) + 1, change: &own, until: r.now + 2*r.cfg.ElectionTimeout,
			beaten: r.lead.beaten,
		}
		r.promiseFence(f.number)
		f.promised.hear(r.cfg.Self, r.heldHighs())
		r.askFence()
	}
	return false, protocol.ReasonNone
}

func (r *Raft) askFence() {
	f := &r.lanes.lead.fence
	f.asked = r.now
	r.place.Uncode(r.see()) // so that no body that is not committed stands before the change
	for _, p := range r.lead.peers {
		if r.members.Voters.Has(p.ID) {
			r.send(message.With(protocol.Message{Type: message.Fence, To: p.ID}, message.Part{Round: f.number}))
		}
	}
}

func onFenceResp(r *Raft, m message.Message) {
	if r.lanes == nil {
		return
	}
	f := &r.lanes.lead.fence
	if f.change == nil || m.Round != f.number {
		return
	}
	f.promised.hear(m.From, m.Lanes)
}

// fenceDone reports whether a quorum is behind the fence, and the log has all that it holds.
func (r *Raft) fenceDone() bool {
	l := r.lanes
	f := &l.lead.fence
	mutant := r.cfg.Mutant
	return r.members.Voters.Agreed(func(id protocol.MemberID) uint64 {
		if own := l.fence.number >= f.number && l.fence.step <= r.disk.Done; id == r.cfg.Self && !own && mutant != MutantLaneNoPromise {
			return 0
		}
		return bit(r.covers(&f.promised, id) || mutant == MutantLaneFenceUncovered && slices.Contains(f.promised.by, id))
	}) == 1
}

// brought reports whether the log has a lane up to a number, or the lane is closed. If not, it is written there at
// once, and asked for if it is missing here.
func (r *Raft) brought(high message.LaneHigh, from protocol.MemberID) bool {
	l := r.lanes
	mark := l.end.of(high.Lane)
	if mark == nil || mark.to >= high.High {
		return true
	}
	h := l.hold(high.Lane)
	h.urgent = max(h.urgent, high.High)
	if h.high() < high.High && !h.partial(mark.to+1) && r.now >= h.fetched+r.cfg.Heartbeat {
		h.fetched = r.now
		r.fetchLane(from, h)
	}
	return false
}

// goBehindFence makes the change that waits for the fence as soon as it can be made, or gives it up.
func (r *Raft) goBehindFence() {
	if r.lanes == nil || r.lanes.lead.fence.change == nil || r.given < r.commit {
		return // what is committed in this step was so under the old voters, and is handed over first
	}
	f := &r.lanes.lead.fence
	switch {
	case r.now >= f.until:
		context := f.change.Context
		*f = fencing{}
		r.out.Refuse(context, protocol.ReasonChangePending, r.cfg.Self)
	case r.fenceDone():
		f.done = true
		r.proposeChange(*f.change)
		*f = fencing{}
	case r.now >= f.asked+r.cfg.Heartbeat:
		r.askFence()
	}
}

// beginGeneration lets members count acknowledgements again, under the voters of now. A leader that died
// may have left a fence, which ends so too.
func (r *Raft) beginGeneration() {
	l := r.lanes
	seen := max(l.lead.seen, l.fence.number)
	if l.lead.fence.change != nil || !r.lead.ready || r.lead.hand.to != 0 || r.commit < r.lead.first || r.members.At > r.commit || r.members.Config.Joint() ||
		l.end.open && seen <= l.end.gen {
		return
	}
	e := protocol.NewGeneration(max(l.end.gen, seen) + 1)
	r.appendOwn(&e, make([]byte, protocol.HeadSize))
	r.advance()
	r.replicateAll()
}

// acceptLane says which batches of this member's lane are accepted: its own disk has them, and a quorum said under the
// generation active that it has them. Who promised a fence counts no more. The leader need not be known, nor need there
// be one.
func (r *Raft) acceptLane() {
	l := r.lanes
	o := &l.own
	fenced := l.fence.number > o.gen && r.cfg.Mutant != MutantLaneNoPromise
	if len(o.ids) == 0 || !l.confirmed.open || o.gen != l.confirmed.gen || fenced {
		return
	}
	h := l.hold(o.lane)
	own := h.durable(&r.disk)
	if r.cfg.Mutant == MutantLaneAcceptUnsynced {
		own = h.high()
	}
	to := r.members.Electorate(r.given).Agreed(func(id protocol.MemberID) uint64 {
		if id == r.cfg.Self {
			return own
		}
		for _, t := range o.to {
			if t.id == id {
				return t.counted
			}
		}
		if r.cfg.Mutant == MutantLaneAcceptAlone {
			return math.MaxUint64
		}
		return 0
	})
	if r.cfg.Mutant == MutantLaneAcceptAlone {
		to = own
	}
	to = min(to, own)
	for o.accepted = max(o.accepted, h.base); o.accepted < to && r.provenInLane(h, o.accepted+1); o.accepted++ {
		r.out.Accepted = append(r.out.Accepted, h.batches[o.accepted-h.base].ID)
	}
}

// countAnew begins to count acknowledgements under the generation active.
func (r *Raft) countAnew() {
	l := r.lanes
	if l.own.gen == l.confirmed.gen {
		return
	}
	l.own.gen = l.confirmed.gen
	for _, t := range l.own.to {
		t.counted = 0
	}
	if len(l.own.ids) > 0 {
		for _, t := range l.own.to {
			r.askLaneTarget(t)
		}
	}
}

// askLaneTarget asks a member how far it holds the lane.
func (r *Raft) askLaneTarget(t *laneTarget) {
	r.send(message.With(protocol.Message{Type: message.Lane, To: t.id, Context: message.Stamp(r.now)},
		message.Part{ID: protocol.ProposalID{Session: r.lanes.own.lane}, Round: r.lanes.own.gen}))
}

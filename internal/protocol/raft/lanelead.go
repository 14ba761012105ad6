package raft

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// A leader puts what it holds of lanes into the log, in the order of each lane. That makes it take
// effect, as anything else in the log.

// laneLeading is the leader's view of lanes beyond what it holds; zero in every other role.
type laneLeading struct {
	// last is the index of the last group that this leader made of a lane, and made is when it did.
	// rest is until when the next ones wait after that is committed; 0: it is not, as far as was seen. If
	// commands come they wait for the next of them after that, at most until ride.
	last             protocol.Index
	made, rest, ride time.Duration
	// tended is the end of the log when lanes were last tended, and came is when it had grown meanwhile.
	tended protocol.Index
	came   time.Duration
	// said are the lanes of which others hold more than this leader.
	said []laneSaid
	// seen is the highest promise of a fence that anybody told of.
	seen  uint64
	fence fencing
	// signals are the last ones that were made, at their index modulo their number.
	signals [32]protocol.Entry
	// recoded are the groups that this leader made with another k than the lane has.
	recoded []protocol.Index
}

// begin forgets what an earlier leadership of this member knew.
func (l *lanes) begin() {
	if l != nil {
		l.lead = laneLeading{}
	}
}

// forgetPieces is for a member that does not lead any more.
func (l *lanes) forgetPieces() {
	for _, h := range l.held {
		h.pieces = nil
	}
}

// resignLanes refuses the change that waits for a fence: this member leads no more.
func (r *Raft) resignLanes(leader protocol.MemberID) {
	if r.lanes == nil {
		return
	}
	r.lanes.forgetPieces()
	if r.lanes.lead.fence.change != nil {
		r.out.Refuse(r.lanes.lead.fence.change.Context, protocol.ReasonNotLeader, leader)
		r.lanes.lead.fence = fencing{}
	}
}

// laneSaid is how far another member holds a lane.
type laneSaid struct {
	message.LaneHigh
	since time.Duration
}

// confirmLanes appends what is held of lanes and is not in the log. As long as no one waits for a result there is one
// such group in progress, and after it a pause that is as long, so that groups grow with the load, and take no more
// than half of the time. After the pause they go along with the next command.
func (r *Raft) confirmLanes() {
	l := r.lanes
	if l == nil || r.role != protocol.Leader || !r.lead.ready || r.lead.hand.to != 0 {
		return
	}
	if r.log.Last > l.lead.tended {
		l.lead.came = r.now
	}
	idle, appended, waits := r.restedLanes(), false, false
	for _, h := range l.held {
		m := l.end.of(h.lane)
		if m != nil && r.cfg.Mutant == MutantLaneFromCommitted && l.confirmed.of(h.lane) != nil && l.lead.last < r.lead.first {
			m.to = l.confirmed.of(h.lane).to
		}
		if m == nil || m.to >= h.high() {
			continue
		}
		if !idle && m.to >= h.urgent && !r.crowdedLane(h) {
			waits = true
			continue
		}
		for m.to < h.high() && (!h.partial(m.to+1) || r.cfg.Mutant == MutantLaneConfirmRow) && r.confirmLane(h, m.to) {
			appended = true
		}
	}
	switch {
	case appended:
		l.lead.last, l.lead.made, l.lead.rest, l.lead.ride = r.log.Last, r.now, 0, 0
		r.replicateAll()
	case waits && l.lead.ride > r.now:
		r.out.WakeBy(l.lead.ride)
	}
	l.lead.tended = r.log.Last
}

// restedLanes reports whether groups may be made for which no one waits. A barrier and a fence wait for all of them.
func (r *Raft) restedLanes() bool {
	l := &r.lanes.lead
	switch {
	case l.last == 0:
		return true
	case l.last > r.commit:
		return false
	case l.rest == 0:
		took := min(r.now-l.made, r.cfg.Heartbeat/2)
		l.rest = r.now + took
		if l.ride = l.rest; l.came > l.made {
			l.ride += took / 2
		}
	}
	along := l.came == r.now && r.now >= l.rest
	return along || r.now >= l.ride || r.lead.reads.barrier.on || l.fence.change != nil
}

// crowdedLane reports whether so much waits of a lane that its pause is cut short.
func (r *Raft) crowdedLane(h *heldLane) bool {
	return r.lanes.lead.last <= r.commit && h.bytes > r.laneWindow()/2
}

// tendLanes does what follows for lanes from any step.
func (r *Raft) tendLanes() {
	if r.lanes == nil {
		return
	}
	r.payLanes()
	if r.role == protocol.Leader {
		r.goBehindFence()
		r.confirmLanes()
		r.gatherLanes()
		r.beginGeneration()
		if r.lead.reads.barrier.on {
			r.confirmReads()
		}
	}
}

// confirmLane appends a group of a lane's batches after a number, if there is space. A batch with a body is alone. If
// the leader would not code as much now, it does not code that body as much either.
func (r *Raft) confirmLane(h *heldLane, after uint64) bool {
	batches := h.after(after)
	n := protocol.Fitting(batches, r.cfg.MaxFrameBytes)
	n = max(1, untilBody(batches[:n]))
	bytes := 0
	for i := range batches[:n] {
		bytes += batches[i].Bytes()
	}
	if r.lead.uncommitted > 0 && r.lead.uncommitted+bytes > r.cfg.MaxUncommittedBytes {
		return false
	}
	e := protocol.NewRange(h.lane, batches[:n])
	if e.Coded() {
		r.recode(&e)
	}
	r.appendOwn(&e, make([]byte, protocol.HeadSize))
	return true
}

// recode lowers the k of a lane's body that is about to be appended to what this leader would code a body with. No one
// can make such a group of what it holds of the lane.
func (r *Raft) recode(e *protocol.Entry) {
	if k := r.place.K(r.see()); e.K > k {
		e.K = k
		recoded := &r.lanes.lead.recoded
		*recoded = append(slices.DeleteFunc(*recoded, func(i protocol.Index) bool { return i <= r.log.Base }), r.log.Last+1)
	}
}

func onLaneOpen(r *Raft, m message.Message) {
	if r.lanes != nil && m.From == m.ID.Session.Member {
		r.openLane(m.From, m.Part)
	}
}

// openLane opens a member's lane. The lane of an earlier incarnation ends there, so all that this incarnation may have
// acknowledged comes into the log before.
func (r *Raft) openLane(id protocol.MemberID, ask *message.Part) {
	l, lane := r.lanes, ask.ID.Session
	mark := l.end.member(id)
	switch {
	case !r.lead.ready || r.lead.hand.to != 0 || r.members.Config.Find(id) == nil:
		return
	case mark != nil && mark.lane.Line() == lane.Line() && mark.lane.Life() >= lane.Life():
		return // it is open, or an earlier incarnation's question arrives late
	case mark != nil && mark.lane.Incarnation == ask.Round && r.cfg.Mutant != MutantLaneNoDrain &&
		!r.brought(message.LaneHigh{Lane: mark.lane, High: ask.ID.Seq}, id):
		return // it asks again
	}
	e := protocol.NewLane(lane)
	r.appendOwn(&e, make([]byte, protocol.HeadSize))
	r.advance()
	r.replicateAll()
}

// fetchLane asks a member for what this one is missing of a lane.
func (r *Raft) fetchLane(from protocol.MemberID, h *heldLane) {
	if from != r.cfg.Self {
		after := h.high()
		if m := r.lanes.end.of(h.lane); m != nil {
			after = h.wholeTo(m.to)
		}
		r.send(message.With(protocol.Message{Type: message.LaneFetch, To: from}, message.Part{Index: protocol.Index(after + 1), ID: protocol.ProposalID{Session: h.lane}}))
	}
}

// heardLanes takes in what an answer to a heartbeat says of lanes.
func (r *Raft) heardLanes(m message.Message) {
	if r.lanes == nil || m.Type != message.HeartbeatResp {
		return
	}
	r.heardHighs(m)
	if rd := &r.lead.reads; rd.barrier.on && m.Round >= rd.round && m.Round <= r.lead.round {
		rd.barrier.said.hear(m.From, m.Lanes)
	}
}

// heardHighs takes in what a member holds of lanes. If this leader has not got it from the lane's own
// member within a heartbeat, it asks: that member may be gone, or cut off from here.
func (r *Raft) heardHighs(m message.Message) {
	l := r.lanes
	if l == nil {
		return
	}
	l.lead.seen = max(l.lead.seen, m.Fence)
	for _, high := range m.Lanes {
		if mark := l.end.of(high.Lane); mark == nil || high.High <= max(mark.to, l.hold(high.Lane).high()) {
			continue
		}
		r.heardHigh(m.From, high)
	}
}

func (r *Raft) heardHigh(from protocol.MemberID, high message.LaneHigh) {
	l := r.lanes
	for i := range l.lead.said {
		s := &l.lead.said[i]
		if s.Lane != high.Lane {
			continue
		}
		h := l.hold(s.Lane)
		switch {
		case h.high() >= s.High: // it came
			*s = laneSaid{high, r.now}
		case h.partial(l.end.of(s.Lane).to + 1): // see gatherLanes
		case r.now >= s.since+r.cfg.Heartbeat:
			r.fetchLane(from, h)
			s.since = r.now
		}
		return
	}
	l.lead.said = append(l.lead.said, laneSaid{high, r.now})
}

package lane

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// A leader puts what it holds of lanes into the log, in the order of each lane. That makes it take
// effect, as anything else in the log.

// leading is the leader's view of lanes beyond what it holds; zero in every other role.
type leading struct {
	// last is the index of the last group that this leader made of a lane, and made is when it did.
	// rest is until when the next ones wait after that is committed; 0: it is not, as far as was seen. If
	// commands come they wait for the next of them after that, at most until ride.
	last             protocol.Index
	made, rest, ride time.Duration
	// tended is the end of the log when lanes were last tended, and came is when it had grown meanwhile.
	tended protocol.Index
	came   time.Duration
	// said are the lanes that others hold further than this leader.
	said []saidHigh
	// seen is the highest promise of a fence that a member reported.
	seen  uint64
	fence fencing
	// signals are the last ones that were made, at their index modulo their number.
	signals [32]protocol.Entry
	// groups is where Groups puts what it returns.
	groups []protocol.Entry
	// recoded are the groups that this leader made with another k than the lane has.
	recoded []protocol.Index
}

// Begin forgets what an earlier leadership of this member knew.
func (l *Lanes) Begin() {
	if l != nil {
		l.lead = leading{}
	}
}

// Resign refuses the change that waits for a fence: this member leads no more.
func (l *Lanes) Resign(v *View, leader protocol.MemberID) {
	if l == nil {
		return
	}
	for _, h := range l.held {
		h.pieces = nil
	}
	if l.lead.fence.change != nil {
		v.Out.Refuse(l.lead.fence.change.Context, protocol.ReasonNotLeader, leader)
		l.lead.fence = fencing{}
	}
}

// saidHigh is how far another member holds a lane.
type saidHigh struct {
	message.LaneHigh
	since time.Duration
}

// Groups returns the groups of what is held of lanes and is not in the log; they are to be appended at once. As long as
// no one waits for a result there is one such group in progress, and after it a pause that is as long, so that groups
// grow with the load, and take no more than half of the time. After the pause they go along with the next command.
func (l *Lanes) Groups(v *View) []protocol.Entry {
	d := &l.lead
	if v.Log.Last > d.tended {
		d.came = v.Now
	}
	idle, waits, uncommitted := d.rested(v), false, v.Uncommitted
	clear(d.groups)
	d.groups = d.groups[:0]
	for _, h := range l.held {
		m := l.end.of(h.lane)
		if m != nil && v.Settings.Mutant == MutantFromCommitted && l.confirmed.of(h.lane) != nil && d.last < v.First {
			m.to = l.confirmed.of(h.lane).to
		}
		if m == nil || m.to >= h.high() {
			continue
		}
		if !idle && m.to >= h.urgent && !d.crowded(v, h) {
			waits = true
			continue
		}
		for to := m.to; to < h.high() && (!h.partial(to+1) || v.Settings.Mutant == MutantConfirmRow); {
			batches := groupOf(h.after(to), v.Settings.MaxFrameBytes)
			if !fits(batches, uncommitted, v.Settings.MaxUncommittedBytes) {
				break
			}
			to += uint64(len(batches))
			uncommitted += d.group(v, h.lane, batches)
		}
	}
	switch {
	case len(d.groups) > 0:
		d.last, d.made, d.rest, d.ride = v.Log.Last+protocol.Index(len(d.groups)), v.Now, 0, 0
	case waits && d.ride > v.Now:
		v.Out.WakeBy(d.ride)
	}
	d.tended = v.Log.Last + protocol.Index(len(d.groups))
	return d.groups
}

// groupOf are the batches of the next group. A batch with a body is alone.
func groupOf(batches []protocol.Entry, frame int) []protocol.Entry {
	n := protocol.Fitting(batches, frame)
	return batches[:max(1, untilBody(batches[:n]))]
}

// fits reports whether there is space for batches after the entries that are not committed.
func fits(batches []protocol.Entry, uncommitted, most int) bool {
	bytes := 0
	for i := range batches {
		bytes += batches[i].Bytes()
	}
	return uncommitted == 0 || uncommitted+bytes <= most
}

// group makes a group, and returns its bytes. If the leader would not code as much now as the lane has, it does not
// code the group's body as much either. No one can make such a group of what it holds of the lane.
func (l *leading) group(v *View, lane protocol.Lane, batches []protocol.Entry) int {
	e := protocol.NewRange(lane, batches)
	if e.Coded() {
		if k := v.Place.K(&v.View); e.K > k {
			e.K = k
			known := slices.DeleteFunc(l.recoded, func(i protocol.Index) bool { return i <= v.Log.Base })
			l.recoded = append(known, v.Log.Last+protocol.Index(len(l.groups))+1)
		}
	}
	l.groups = append(l.groups, e)
	return e.Bytes()
}

// rested reports whether groups may be made for which no one waits. A barrier and a fence wait for all of them.
func (l *leading) rested(v *View) bool {
	switch {
	case l.last == 0:
		return true
	case l.last > v.Commit:
		return false
	case l.rest == 0:
		took := min(v.Now-l.made, v.Settings.Heartbeat/2)
		l.rest = v.Now + took
		if l.ride = l.rest; l.came > l.made {
			l.ride += took / 2
		}
	}
	along := l.came == v.Now && v.Now >= l.rest
	return along || v.Now >= l.ride || v.Waits || l.fence.change != nil
}

// crowded reports whether so much waits of a lane that its pause is cut short.
func (l *leading) crowded(v *View, h *heldLane) bool {
	return l.last <= v.Commit && h.bytes > v.window()/2
}

// Open opens a member's lane by the entry that is returned; false: not now. The lane of an earlier incarnation ends
// there, so all that this incarnation may have acknowledged comes into the log before.
func (l *Lanes) Open(v *View, id protocol.MemberID, ask *message.Part) (e protocol.Entry, ok bool) {
	lane := ask.ID.Session
	mark := l.end.member(id)
	switch {
	case !v.Ready || v.Handing || v.Members.Config.Find(id) == nil || !v.on():
		return e, false
	case mark != nil && mark.lane.Line() == lane.Line() && mark.lane.Rank() >= lane.Rank():
		return e, false // it is open, or an earlier incarnation's question arrives late
	case mark != nil && mark.lane.Incarnation == ask.Round && v.Settings.Mutant != MutantNoDrain &&
		!l.brought(v, message.LaneHigh{Lane: mark.lane, High: ask.ID.Seq}, id):
		return e, false // it asks again
	}
	return protocol.NewLane(lane), true
}

// fetch asks a member for what this one is missing of a lane.
func (l *Lanes) fetch(v *View, from protocol.MemberID, h *heldLane) {
	if from != v.Settings.Self {
		after := h.high()
		if m := l.end.of(h.lane); m != nil {
			after = h.wholeTo(m.to)
		}
		v.Out.Post(message.With(protocol.Message{Type: message.LaneFetch, To: from},
			message.Part{Index: protocol.Index(after + 1), ID: protocol.ProposalID{Session: h.lane}}))
	}
}

// Heard takes in what a member holds of lanes. If this leader has not got it from the lane's own
// member within a heartbeat, it asks: that member may be gone, or cut off from here.
func (l *Lanes) Heard(v *View, m message.Message) {
	if l == nil {
		return
	}
	l.lead.seen = max(l.lead.seen, m.Fence)
	for _, high := range m.Lanes {
		if mark := l.end.of(high.Lane); mark == nil || high.High <= max(mark.to, l.hold(high.Lane).high()) {
			continue
		}
		l.heardHigh(v, m.From, high)
	}
}

func (l *Lanes) heardHigh(v *View, from protocol.MemberID, high message.LaneHigh) {
	for i := range l.lead.said {
		s := &l.lead.said[i]
		if s.Lane != high.Lane {
			continue
		}
		h := l.hold(s.Lane)
		switch {
		case h.high() >= s.High: // it came
			*s = saidHigh{high, v.Now}
		case h.partial(l.end.of(s.Lane).to + 1): // see Gather
		case v.Now >= s.since+v.Settings.Heartbeat:
			l.fetch(v, from, h)
			s.since = v.Now
		}
		return
	}
	l.lead.said = append(l.lead.said, saidHigh{high, v.Now})
}

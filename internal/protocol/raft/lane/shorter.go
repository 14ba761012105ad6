package lane

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// A member that may use its lane sends blind commands to the leader instead while that is shorter (lcr.md, 1.5 (g)).
// It measures both with batches that are on their way anyway, one of each at a time.

// shorter is what a member measures of its lane and of the path by the leader, and which of both it uses.
type shorter struct {
	// lane is how long it took, recently, until the member's own disk and a quorum acknowledged a batch of its lane.
	// leader is how long it took until a batch that went to the leader was committed here, under term and last at
	// heard. 0: not known.
	lane, leader, heard time.Duration
	term                protocol.Term
	inLane              inLane
	sent                sent
	// byLeader: blind commands go to the leader, once the lane is empty. since is when that began or ended. It is for
	// stay at most: then the lane is measured again.
	byLeader    bool
	since, stay time.Duration
	// worse is since when the other one has been shorter without a break, an instant + 1ns; 0: it is not.
	worse time.Duration
}

// inLane is the batch of the lane that is measured: its number, and when it was proposed, an instant + 1ns; 0: none is.
type inLane struct {
	number uint64
	began  time.Duration
}

// sent is the batch that is measured on its way by the leader: when it was proposed, as above, and its index, once the
// log has it here.
type sent struct {
	id    protocol.ProposalID
	began time.Duration
	index protocol.Index
}

// How much longer the path in use must be for an election timeout, in parts of the other one, and for how many election
// timeouts the leader's path is used before the lane is measured again: twice as many each time, up to mostStays. What
// was measured of the leader counts as long.
const (
	margin    = 5
	firstStay = 10
	mostStays = 8
)

// brought begins to measure a batch that was just put into the lane, unless another one is measured.
func (s *shorter) brought(v *View, h *heldLane) {
	if s.inLane.began == 0 {
		s.inLane = inLane{h.high(), v.Now + 1}
	}
}

// Forwarded begins to measure a batch that goes to the leader, unless another one is measured, which is not lost.
func (l *Lanes) Forwarded(v *View, entries []protocol.Entry) {
	if l == nil || !v.on() || len(entries) == 0 {
		return
	}
	s, e := &l.own.shorter.sent, &entries[len(entries)-1]
	if free := s.began == 0 || v.Now >= s.began+2*v.Settings.ElectionTimeout; free && e.Kind == protocol.EntryBatch {
		*s = sent{id: e.ID, began: v.Now + 1}
	}
}

// appended notes where the log has the batch that is measured.
func (s *sent) appended(e *protocol.Entry) {
	if s.began > 0 && e.ID == s.id {
		s.index = e.Index
	}
}

// choose measures, and chooses between the lane and the leader.
func (l *Lanes) choose(v *View) {
	s := &l.own.shorter
	if s.term != v.Term { // the path by another leader is another one
		s.term, s.leader, s.sent = v.Term, 0, sent{}
		s.use(v, false)
	}
	if v.Role == protocol.Leader || !l.isOpen() || v.Leader == 0 {
		s.inLane, s.worse = inLane{}, 0
		s.use(v, false)
		return
	}
	l.measure(v)
	timeout := v.Settings.ElectionTimeout
	now, other, began := s.lane, s.leader, s.inLane.began
	if s.byLeader {
		now, other, began = s.leader, s.lane, s.sent.began
	} else if v.Now > s.heard+firstStay*timeout {
		other = 0 // the load may be another one now
	}
	if began > 0 {
		now = max(now, v.Now+1-began)
	}
	switch {
	case s.byLeader && len(l.own.ids) > 0 && v.Now >= s.since+timeout: // what waits for the lane waits no longer
		s.use(v, false)
	case s.byLeader && v.Now >= s.since+s.stay:
		s.use(v, false)
		s.lane = 0
	case now == 0 || other == 0 || now <= other+other/margin:
		s.worse = 0
	case s.worse == 0:
		s.worse = v.Now + 1
	case v.Now+1 < s.worse+timeout:
	case s.byLeader:
		s.use(v, false)
	default:
		if stay := s.stay; stay > 0 && v.Now < s.since+stay { // the lane was soon worse again
			s.stay = min(2*stay, firstStay*mostStays*timeout)
		} else {
			s.stay = firstStay * timeout
		}
		s.use(v, true)
		l.counts.ByLeader++
	}
}

// use changes to the leader, or to the lane.
func (s *shorter) use(v *View, leader bool) {
	if s.byLeader != leader {
		s.byLeader, s.since, s.worse = leader, v.Now, 0
	}
}

// measure ends what was acknowledged or committed.
func (l *Lanes) measure(v *View) {
	s := &l.own.shorter
	if in := &s.inLane; in.began > 0 {
		switch base := l.confirmed.of(l.own.lane).to; {
		case !l.counting(v):
			*in = inLane{} // nothing can be accepted
		case in.number <= max(base, l.own.accepted):
			s.lane = mean(s.lane, v.Now+1-in.began)
			*in = inLane{}
		}
	}
	if sent := &s.sent; sent.index > 0 && sent.index <= v.Given {
		s.leader, s.heard = mean(s.leader, v.Now+1-sent.began), v.Now
		sent.began, sent.index = 0, 0
	}
}

// mean is the recent mean, once another time was measured. before is 0 if there was none.
func mean(before, took time.Duration) time.Duration {
	if before == 0 {
		return max(took, 1)
	}
	return max(before+(took-before)/4, 1)
}

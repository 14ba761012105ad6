package node

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// A leader waits for no unneeded member. Once a majority has an entry, that majority suffices to commit it, even if
// others are late, and if the entry is coded (docs/internals/craft.md, "When a member is behind").

// prompt tracks, on a leader, the first entry that is not committed.
type prompt struct {
	term  protocol.Term
	index protocol.Index
	// holds is, for each voter, the time since which it has had that entry without a fault between it and the leader.
	holds map[protocol.MemberID]holding
}

// holding is the time since which a member has an entry. wrongs is the number of faults by then.
type holding struct {
	since  time.Duration
	wrongs int
}

// judgePrompt checks, at a tick, that an entry of a majority is committed in bounded time. now is the status of the
// core.
func (s *MemberInstance) judgePrompt(now *protocol.Status) {
	w, st, p := s.Member.Env, &s.Witness.Latest, &s.prompt
	i := now.Commit + 1
	if p.term != st.Term || p.index != i {
		*p = prompt{term: st.Term, index: i, holds: map[protocol.MemberID]holding{}}
	}
	if i > now.Last || now.Config.Joint() || len(now.Config.Voters()) < 3 {
		return
	}
	var held []protocol.MemberID
	agreed := w.Set.deciders(&now.Config).Agreed(func(id protocol.MemberID) uint64 {
		at, ok := s.holdsSince(w.Member(id))
		if !ok {
			return 0
		}
		held = append(held, id)
		return uint64(max(0, w.Now()-at)) + 1 // a member may be paused for longer
	})
	if agreed > uint64(w.Promptness())+1 {
		w.Violate(s.Member.ID, fmt.Errorf("entry %d of instance %d is not committed %s after a quorum held it, of %v", i, s.Instance, time.Duration(agreed-1), held))
	}
}

// holdsSince returns the time since which a member has had the first uncommitted entry without a fault; false if it
// does not have it, or there is a fault now.
func (s *MemberInstance) holdsSince(o *Member) (time.Duration, bool) {
	w, m, p := s.Member.Env, s.Member, &s.prompt
	there, back := w.Net.Link(m.ID, o.ID), w.Net.Link(o.ID, m.ID)
	wrongs := w.wrongs(m, o, s.Instance) + int(s.Inst.HeldUp())
	h, ok := p.holds[o.ID]
	if !ok || h.wrongs != wrongs {
		h = holding{w.Now(), wrongs}
	}
	trip := w.Now() + w.Set.DelayMax
	if p.term != protocol.Term(s.Judges.Ledger.DurableTerm(o.Judged(), uint64(p.index))) || there.Cut || back.Cut || there.Backed(trip) || back.Backed(trip) {
		delete(p.holds, o.ID)
		return 0, false
	}
	p.holds[o.ID] = h
	return max(h.since, m.Still(), o.Still()), true // no member was checked while it was paused
}

// Promptness is the maximal time to commit an entry that a majority has.
func (w *Environment) Promptness() time.Duration {
	s := w.Set
	return 3 * (s.Election + 2*(s.DelayMax+s.SyncMax+s.Tick) + 8*s.HopMax)
}

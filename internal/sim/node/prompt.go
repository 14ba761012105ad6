package node

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// A leader waits for nobody whom it does not need. Once a majority holds an entry, that majority
// alone is enough to commit it, also where others are late, and where the entry is coded
// (docs/internals/craft.md, "When a member is behind").

// prompt follows, on a leader, the first entry that is not committed.
type prompt struct {
	term  protocol.Term
	index protocol.Index
	// holds is, for each voter, since when it has held that entry and nothing has gone wrong
	// between it and the leader.
	holds map[protocol.MemberID]holding
}

// holding is since when a member holds an entry. wrongs is what had gone wrong by then.
type holding struct {
	since  time.Duration
	wrongs int
}

// judgePrompt judges, at a tick, that what a majority holds is committed in bounded time. now is how the
// core stands.
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
		return uint64(max(0, w.Now()-at)) + 1 // a member may stand still for longer
	})
	if agreed > uint64(w.Promptness())+1 {
		w.Violate(s.Member.ID, fmt.Errorf("entry %d of instance %d is not committed %s after a quorum held it, of %v", i, s.Instance, time.Duration(agreed-1), held))
	}
}

// holdsSince is since when a member has held the first uncommitted entry while nothing went wrong;
// false if it does not hold it, or something goes wrong now.
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
	return max(h.since, m.still(), o.still()), true // nobody looked while they stood still
}

// Promptness is how long it may take to commit what a majority holds.
func (w *Environment) Promptness() time.Duration {
	s := w.Set
	return 3 * (s.Election + 2*(s.DelayMax+s.SyncMax+s.Tick) + 8*s.HopMax)
}

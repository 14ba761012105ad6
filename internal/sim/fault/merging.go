package fault

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// The time from a decision until all members have executed it (docs/internals/niagara.md, N7).

// MergeTime is the maximal time until all running members have applied a decided slot, while every instance has a
// leader. In that time the other instances skip, and members learn the commit indexes. A leader that transfers
// leadership to a member that has just stopped accepts no proposals for an election timeout.
func (s *Settings) MergeTime() time.Duration {
	return s.Election + 3*s.Heartbeat + 2*s.Tick + 8*(s.DelayMax+s.SyncMax) + 24*s.HopMax
}

// stands records that a member campaigns. Votes are split by chance, and each term without a leader costs another
// election.
func stands(w *World, c *node.Witness) {
	j := c.Part.Judges
	if c.Latest.Role != protocol.Candidate || c.Latest.Term <= j.Stood {
		return
	}
	if j.Stood > j.Won {
		w.detours += w.Set.electionTime()
	}
	j.Stood = c.Latest.Term
	releaseFor(w, c.Member)
}

// unled reports whether an active instance has never had a leader.
func unled(w *World) bool {
	return slices.ContainsFunc(w.Court.All, func(c *judge.Instance) bool { return !c.Ended && c.Won == 0 })
}

// Unsent is the maximal number of entries of an instance that its leader has not yet sent to a running member,
// because of a small limit of entries in flight. New entries of the instance, skips too, come after these.
func Unsent(w *World) (most int) {
	up := slices.DeleteFunc(Serving(w, w.Members), func(m *node.Member) bool { return !m.Up })
	for _, m := range up {
		for _, s := range m.InForce {
			st := s.Inst.Core().Status()
			for _, p := range st.Peers { // only a leader has any
				if slices.Contains(up, w.Member(p.ID)) {
					most = max(most, int(st.Last)+1-int(p.Next))
				}
			}
		}
	}
	return most
}

// judgeMerging checks that all members soon apply an entry that was just decided (N7).
func judgeMerging(w *World, instance protocol.InstanceID, index protocol.Index) {
	if w.Merging == 0 {
		return
	}
	limit := w.Merging + time.Duration(Unsent(w))*w.Set.PieceTime()
	if unled(w) {
		limit += w.Set.electionTime()
	}
	judgeMerged(w, instance, index, w.Now(), limit, w.detours)
}

// judgeMerged checks, at the time decided plus limit, that all members have applied an entry. It checks later if
// there were detours meanwhile: before is w.detours at the time of the call.
func judgeMerged(w *World, instance protocol.InstanceID, index protocol.Index, decided, limit, before time.Duration) {
	w.After(decided+limit-w.Now(), func() {
		if w.detours > before {
			judgeMerged(w, instance, index, decided, limit+w.detours-before, w.detours)
			return
		}
		for _, m := range Serving(w, w.Members) {
			// A member that started later has to catch up first.
			if m.Up && m.Began <= decided && !m.Sick() && w.Merging > 0 &&
				m.Among(m.InForce, instance) != nil && pointOf(m.Applier, instance) < index {
				w.Violate(m.ID, fmt.Errorf("N7: entry %d of instance %d was decided %s ago and is not executed: %s",
					index, instance, limit, m.Gap()))
			}
		}
	})
}

func pointOf(a *apply.Applier, instance protocol.InstanceID) protocol.Index {
	at := a.Cursor()
	return at.Point(instance).Index
}

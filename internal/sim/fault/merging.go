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

// How soon what is decided is executed everywhere (docs/internals/niagara.md, N7).

// MergeTime is how long it takes at most until all members that are up have applied a decided slot,
// while every instance has a leader. In that time the other instances skip, and the news spreads
// that all is committed. A leader that hands over to a member that has just stopped takes nothing
// for an election timeout.
func (s *Settings) MergeTime() time.Duration {
	return s.Election + 3*s.Heartbeat + 2*s.Tick + 8*(s.DelayMax+s.SyncMax) + 24*s.HopMax
}

// stands notes that a member stands for election. A term in which nobody led was in vain: elections
// collide by chance, and each such term takes an election more.
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

// unled reports whether an instance in force has never had a leader.
func unled(w *World) bool {
	return slices.ContainsFunc(w.Court.All, func(c *judge.Instance) bool { return !c.Ended && c.Won == 0 })
}

// Unsent is how many entries of an instance at most its leader has not even sent to a living
// member: a narrow limit of what may be in flight holds them back. What the instance gets now, a
// skip too, comes behind these.
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

// judgeMerging judges that all members soon apply an entry that was just decided (N7).
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

// judgeMerged judges an entry that was decided at an instant, a while after that, or later if
// there were detours since then: before says how long they had been by then.
func judgeMerged(w *World, instance protocol.InstanceID, index protocol.Index, decided, limit, before time.Duration) {
	w.After(decided+limit-w.Now(), func() {
		if w.detours > before {
			judgeMerged(w, instance, index, decided, limit+w.detours-before, w.detours)
			return
		}
		for _, m := range Serving(w, w.Members) {
			// Whoever started later first has to learn what it missed.
			if m.Up && m.Began <= decided && !m.Sick() && w.Merging > 0 && m.Among(m.InForce, instance) != nil && pointOf(m.Applier, instance) < index {
				w.Violate(m.ID, fmt.Errorf("N7: entry %d of instance %d was decided %s ago and is not executed: %s", index, instance, limit, m.Gap()))
			}
		}
	})
}

func pointOf(a *apply.Applier, instance protocol.InstanceID) protocol.Index {
	at := a.Cursor()
	return at.Point(instance).Index
}

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// stranded reports whether a removed member still runs although it can dial a running member that knows of the
// removal. Without such a member it cannot learn of it: the members that knew may have been removed too, and have
// stopped, or have moved to an address that it does not know.
func stranded(w *fault.World, m *node.Member) bool {
	if !m.Up || !fault.Recoverable(w, w.Except(m)) {
		return false
	}
	if !slices.ContainsFunc(w.Members, func(o *node.Member) bool {
		return o != m && o.Up && m.Links.Has(o.ID) && m.KnowsPlaceOf(o) && member.Admit(o.Memberships(), m.ID).Final()
	}) {
		return false
	}
	for _, c := range w.Court.All {
		if !c.Ended && !c.Left[m.ID] {
			return false
		}
	}
	return true
}

// demandDepartures gives removed members a bounded time to learn that they were removed. Some running member knows
// it, because the others reach the same state.
func demandDepartures(w *fault.World, alive []*node.Member) {
	var last *node.Member
	gone := func() bool {
		for _, m := range alive {
			if stranded(w, m) {
				last = m
				return false
			}
		}
		return true
	}
	if limit := 20*w.Set.Election + 100*time.Duration(len(alive))*w.Set.Tick; !w.RunUntil(w.Now()+limit, gone) && w.Broken == nil {
		w.Violate(last.ID, fmt.Errorf("was removed, and still runs %s after the others could tell it", limit))
	}
}

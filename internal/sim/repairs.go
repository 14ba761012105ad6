package sim

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// repairTime is the maximal time to replace a damaged state in election timeouts, while all others can send theirs.
const repairTime = 25

// demandRepairs checks that damaged states are replaced soon after the last fault.
func demandRepairs(w *fault.World, alive []*node.Member) {
	since, late := w.Now(), false
	w.RunUntil(w.Now()+settleTime(w), func() bool {
		serving := fault.Serving(w, alive)
		i := slices.IndexFunc(serving, func(m *node.Member) bool { return m.Exchange.Repairing() })
		if i < 0 {
			return len(serving) > 0
		}
		needs := serving[i].Applier.Cursor()
		if slices.ContainsFunc(serving, func(o *node.Member) bool {
			at, _ := o.Progress.At()
			return o != serving[i] && (o.Sick() || at.Before(&needs))
		}) {
			since = w.Now()
		}
		late = w.Now()-since > repairTime*w.Set.Election
		return late
	})
	if late {
		w.Violate(0, fmt.Errorf("a damaged state is not replaced in %d election timeouts:%s", repairTime, describeMembers(w, alive)))
	}
}

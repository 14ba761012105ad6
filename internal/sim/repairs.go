package sim

import (
	"fmt"
	"slices"
)

// repairTime is how many election timeouts it may take to replace a damaged state, while all others
// could send theirs.
const repairTime = 25

// demandRepairs judges that states which were found damaged are replaced soon after the last fault.
func (w *World) demandRepairs(alive []*Member) {
	since, late := w.Now(), false
	w.RunUntil(w.Now()+w.settleTime(), func() bool {
		serving := w.serving(alive)
		i := slices.IndexFunc(serving, func(m *Member) bool { return m.exchange.Repairing() })
		if i < 0 {
			return len(serving) > 0
		}
		needs := serving[i].applier.Cursor()
		if slices.ContainsFunc(serving, func(o *Member) bool {
			at, _ := o.progress.At()
			return o != serving[i] && (o.sick() || at.Before(&needs))
		}) {
			since = w.Now()
		}
		late = w.Now()-since > repairTime*w.set.Election
		return late
	})
	if late {
		w.Violate(0, fmt.Errorf("a damaged state is not replaced in %d election timeouts:%s", repairTime, w.describeMembers(alive)))
	}
}

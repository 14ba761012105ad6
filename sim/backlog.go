package sim

import (
	"slices"
	"time"
)

// backlogStream is for the settings of state machines that are slow.
const backlogStream = stream + 7

// drawBacklog chooses whether little may wait to be applied, and then mostly that applying is slow.
func (s *Settings) drawBacklog(d dice) {
	if !d.yes(0.2) {
		return
	}
	s.Backlog = 1 + d.below(6)
	if d.yes(0.7) {
		s.ApplyMax = max(s.ApplyMax, s.Heartbeat*time.Duration(1+d.below(4))/2)
	}
}

// noteApplied tells the instance how far it is applied.
func (s *strand) noteApplied() {
	switch {
	case s.m.w.set.Backlog == 0:
	case slices.Contains(s.m.strands, s):
		cursor := s.m.applier.Cursor()
		s.inst.Applied(s.m.applier.Added(s.instance), cursor.Point(s.instance).Index)
	default:
		s.inst.Applied(s.inst.Given(), s.inst.Given())
	}
}

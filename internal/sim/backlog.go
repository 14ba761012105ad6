package sim

import (
	"time"

	"github.com/braidlog/braid/internal/member/apply"
)

// drawBacklog chooses whether only little may wait to be applied. If so, applying is mostly slow.
func (s *Settings) drawBacklog(d chance) {
	s.ApplyBytes = apply.ApplyQueueBytes
	if d.yes(0.2) {
		s.Backlog = 1 + d.below(6)
		if d.yes(0.7) {
			s.ApplyMax = max(s.ApplyMax, s.Heartbeat*time.Duration(1+d.below(4))/2)
		}
	}
	if d.yes(0.3) {
		s.ApplyBytes = d.limit(0, 100, 2000)
	}
}

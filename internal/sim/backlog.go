package sim

import (
	"time"

	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/sim/draw"
)

// drawBacklog chooses whether only little may wait to be applied. If so, applying is mostly slow.
func (s *Settings) drawBacklog(d draw.Chance) {
	s.ApplyBytes = apply.ApplyQueueBytes
	if d.Yes(0.2) {
		s.Backlog = 1 + d.Below(6)
		if d.Yes(0.7) {
			s.ApplyMax = max(s.ApplyMax, s.Heartbeat*time.Duration(1+d.Below(4))/2)
		}
	}
	if d.Yes(0.3) {
		s.ApplyBytes = d.Limit(0, 100, 2000)
	}
}

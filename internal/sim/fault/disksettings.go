package fault

import (
	"github.com/braidlog/braid/internal/sim/draw"
)

func (s *Settings) drawDisks(d draw.Chance) {
	s.SyncMin = d.Duration(0, s.Heartbeat/10)
	s.SyncMax = s.SyncMin + d.Duration(0, s.Heartbeat)
	s.SegmentBytes = int64(d.Limit(4<<10, 16<<10, 128<<10))
	s.SnapshotBytes = d.Limit(300, 5000, 1<<30)
	s.Durable = d.Yes(0.3) && !s.Keyed
}

// keepLog sets how much of the log is kept for members that catch up. It draws nothing.
func (s *Settings) keepLog(draw.Chance) {
	s.KeepLogBytes = int64(s.Seed%3) * 20 * int64(s.SnapshotBytes)
}

// drawKills draws whether members may stop while their machines run on.
func (s *Settings) drawKills(d draw.Chance) { s.Kills = d.Yes(0.2) }

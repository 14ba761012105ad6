package sim

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
)

// diskSettings are of disks, and of what is kept on them.
type diskSettings struct {
	SyncMin, SyncMax time.Duration
	SegmentBytes     int64
	SnapshotBytes    int
	KeepLogBytes     int64 // of log that is kept for members that catch up
	Durable          bool  // the state machine keeps its own state on disk
	// CopyOnWrite: while a disk is full, files of the log and of the bodies cannot be overwritten.
	CopyOnWrite bool
	// Shortage is how often a disk is not full at once, but has about what the member needs.
	Shortage float64
}

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

package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
)

// drawTimes draws the times that most others depend on.
func (s *Settings) drawTimes(d draw.Chance) {
	s.Heartbeat = max(d.Duration(10*time.Millisecond, 100*time.Millisecond), s.LeastHeartbeat())
	s.Election = s.Heartbeat * time.Duration(3+d.Below(10))
	s.Tick = s.Heartbeat / time.Duration(2+d.Below(7))
	s.Chaos = s.Election * time.Duration(10+d.Below(30))
}

// PieceTime is the maximal time to send and write a single entry.
func (s *Settings) PieceTime() time.Duration {
	return 2*(s.DelayMax+s.SyncMax+s.Tick) + s.Heartbeat + s.MostSkipWait()
}

// electionTime is the maximal time of an election. The randomized timeout is at most twice the setting.
func (s *Settings) electionTime() time.Duration { return 2 * s.Election }

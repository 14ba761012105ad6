package fault

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
)

// drawTimes draws the times from which most others follow.
func (s *Settings) drawTimes(d draw.Chance) {
	s.Heartbeat = max(d.Duration(10*time.Millisecond, 100*time.Millisecond), s.LeastHeartbeat())
	s.Election = s.Heartbeat * time.Duration(3+d.Below(10))
	s.Tick = s.Heartbeat / time.Duration(2+d.Below(7))
	s.Chaos = s.Election * time.Duration(10+d.Below(30))
}

// PieceTime is how long it takes at most to send and write one entry alone.
func (s *Settings) PieceTime() time.Duration {
	return 2*(s.DelayMax+s.SyncMax+s.Tick) + s.Heartbeat + s.MostSkipWait()
}

// electionTime is how long an election takes at most. Its timeout is at most twice the setting.
func (s *Settings) electionTime() time.Duration { return 2 * s.Election }

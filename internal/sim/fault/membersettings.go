package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/sim/draw"
)

// drawLines draws the maximal delay of events between the parts of a member.
func (s *Settings) drawLines(d draw.Chance) {
	if d.Yes(0.6) {
		s.HopMax = d.Duration(0, s.Heartbeat/2)
	}
}

// drawTurnLimits draws the limits of the queues of instances, and the size of a large message.
func (s *Settings) drawTurnLimits(d draw.Chance) {
	if d.Yes(0.2) {
		s.PendingBytes = int64(d.Limit(1, 300, 3000))
	}
	if d.Yes(0.2) {
		s.InboxBytes = d.Limit(1, 2000, 20000)
	}
	if d.Yes(0.3) {
		s.LargeMessage = d.Limit(1, 200, 3000)
	}
}

// drawBacklog draws whether the apply queue is short. If so, applying is mostly slow.
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

// drawLarge draws whether commands and bodies are large: the log and the files of bodies write these without a copy.
// Then there are few operations.
func (s *Settings) drawLarge(d draw.Chance) {
	if !d.Yes(0.04) {
		return
	}
	s.Operations = min(s.Operations, 40)
	s.Padding = 40 << 10
	if b := &s.Bodies; b.Share > 0 {
		b.Min, b.Max = 30<<10, 40<<10
	}
	s.Core.MaxUncommittedBytes += s.Clients * (s.Padding + s.Bodies.Max + 500)
}

// drawWriter draws how soon an idle log is sealed and cleaned up, as a share of the time that production waits.
func (s *Settings) drawWriter(d draw.Chance) { s.Idle = d.Share() * d.Share() }

// drawUnequal draws whether the settings of members differ.
func (s *Settings) drawUnequal(d draw.Chance) { s.Unequal = d.Yes(0.3) }

func (s *Settings) describeUnequal() string {
	if !s.Unequal {
		return ""
	}
	return fmt.Sprintln("members have settings of their own")
}

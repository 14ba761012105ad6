package sim

import "github.com/braidlog/braid/internal/sim/draw"

// Large commands and bodies. The log and the bodies' files write them from where they are instead
// of copying them together.

// drawLarge chooses whether commands and bodies are large. Then there are few operations.
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

package draw

import (
	"math/rand/v2"
	"time"
)

// Chance draws numbers, mostly for settings.
type Chance struct{ Rand *rand.Rand }

// Below draws a number below n, which is > 0.
func (d Chance) Below(n int) int { return d.Rand.IntN(n) }

// Yes is true with probability p.
func (d Chance) Yes(p float64) bool { return d.Rand.Float64() < p }

// Share draws a number from 0 to 1, excluding 1.
func (d Chance) Share() float64 { return d.Rand.Float64() }

// Rate draws a probability below most: often 0, usually small.
func (d Chance) Rate(most float64) float64 {
	if d.Yes(0.4) {
		return 0
	}
	f := d.Share()
	return f * f * f * most
}

// Duration draws a time from lo to hi.
func (d Chance) Duration(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Share()*float64(hi-lo))
}

// Limit draws one of three sizes: tiny, small, large.
func (d Chance) Limit(tiny, small, large int) int {
	return [...]int{tiny, small, large}[d.Below(3)]
}

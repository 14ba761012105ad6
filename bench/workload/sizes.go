package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// MaxValue is the largest value in bytes.
const MaxValue = 16 << 20

// Sizes is a range of value sizes in bytes, both ends included. Within it each doubling is equally likely: as many
// values between 16 and 32 bytes as between 1 and 2 MiB.
type Sizes struct{ Min, Max int }

// Fixed is one size for all values.
func Fixed(bytes int) Sizes { return Sizes{bytes, bytes} }

// ParseSizes parses a size such as 16 or 4KiB, or a range of them such as 16-1MiB.
func ParseSizes(text string) (Sizes, error) {
	low, high, isRange := strings.Cut(text, "-")
	if low == "" { // a sign, not a range
		low, isRange = text, false
	}
	var s Sizes
	var err error
	if s.Min, err = bytes(low); err != nil {
		return s, err
	}
	s.Max = s.Min
	if isRange {
		if s.Max, err = bytes(high); err != nil {
			return s, err
		}
	}
	return s, s.Validate()
}

// Validate returns an error that says what is wrong with the sizes.
func (s Sizes) Validate() error {
	switch {
	case s.Min < 1:
		return fmt.Errorf("values of %d bytes: must be at least 1", s.Min)
	case s.Max > MaxValue:
		return fmt.Errorf("values of %d bytes: must be at most %d (16 MiB)", s.Max, MaxValue)
	case s.Min > s.Max:
		return fmt.Errorf("values of %d to %d bytes: the smaller size comes first", s.Min, s.Max)
	}
	return nil
}

// String writes the sizes as ParseSizes reads them.
func (s Sizes) String() string {
	if s.Min == s.Max {
		return formatBytes(s.Min)
	}
	return formatBytes(s.Min) + "-" + formatBytes(s.Max)
}

// Draw returns a random size.
func (s Sizes) Draw(r *rand.Rand) int {
	if s.Min == s.Max {
		return s.Min
	}
	low := float64(s.Min)
	return min(s.Max, int(low*math.Pow(float64(s.Max+1)/low, r.Float64())))
}

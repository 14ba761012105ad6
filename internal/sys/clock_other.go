//go:build !linux && !darwin

package sys

import "time"

var began = time.Now()

// Steady returns the time since some moment, the same one for the life of this process. Here it may not advance while
// the host sleeps.
func Steady() time.Duration { return time.Since(began) }

//go:build linux || darwin

package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// Steady returns the time since some moment, the same one for the life of this process. It also
// advances while the host sleeps; the clock of package time, which takes its place on other systems than Linux and
// macOS, does not.
func Steady() time.Duration {
	var t unix.Timespec
	if err := Again(func() error { return unix.ClockGettime(steady, &t) }); err != nil {
		panic("sys: the clock cannot be read: " + err.Error()) // it needs no more than a pointer
	}
	return time.Duration(t.Nano())
}

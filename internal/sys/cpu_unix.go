//go:build unix

package sys

import (
	"syscall"
	"time"
)

// CPUTime returns how long processors worked for this process so far, all together; 0: that is not known.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if Again(func() error { return syscall.Getrusage(syscall.RUSAGE_SELF, &u) }) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

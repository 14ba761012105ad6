//go:build unix

package sys

import (
	"math"
	"syscall"
)

// Descriptors returns how many descriptors this process may have at a time. ok is false if that is not
// known. The runtime has raised it to the hard limit when the process began.
func Descriptors() (n int, ok bool) {
	var limit syscall.Rlimit
	if err := Again(func() error { return syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) }); err != nil {
		return 0, false
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)), true
}

//go:build unix

package sys

import (
	"math"
	"syscall"
)

// Descriptors returns the maximal number of descriptors of this process. ok is false if it is not known. The runtime
// raises it to the hard limit when the process starts.
func Descriptors() (n int, ok bool) {
	var limit syscall.Rlimit
	if err := Again(func() error { return syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) }); err != nil {
		return 0, false
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)), true
}

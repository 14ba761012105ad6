package sys

import "golang.org/x/sys/unix"

// LockMemory keeps all memory of the process, now and later, from being swapped out.
func LockMemory() error {
	return Again(func() error { return unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE) })
}

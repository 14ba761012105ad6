//go:build !linux

package sys

import "errors"

// LockMemory keeps all memory of the process, now and later, from being swapped out. Here it cannot.
func LockMemory() error { return errors.ErrUnsupported }

package sys

import (
	"errors"
	"syscall"
)

// Again repeats a call as long as a signal interrupts it.
func Again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// NoDescriptor reports whether an error is that there is no descriptor for another file or connection, of this
// process (EMFILE) or of the machine (ENFILE). Nothing was done then, and the call may succeed as soon as some
// descriptor is closed.
func NoDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

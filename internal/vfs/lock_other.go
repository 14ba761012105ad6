//go:build !unix

package vfs

import (
	"errors"
	"io"
	"os"
)

// Lock is not supported here, so no member can open a directory. Programs that are only clients can be built.
func (osFS) Lock(name string) (io.Closer, error) {
	return nil, &os.PathError{Op: "lock", Path: name, Err: errors.ErrUnsupported}
}

//go:build !unix

package vfs

import (
	"errors"
	"io"
	"os"
)

// Lock cannot lock here, so no member opens a directory. Programs that only use other members can be built.
func (osFS) Lock(name string) (io.Closer, error) {
	return nil, &os.PathError{Op: "lock", Path: name, Err: errors.ErrUnsupported}
}

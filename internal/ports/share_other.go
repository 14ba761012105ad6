//go:build !unix || solaris

package ports

import (
	"errors"
	"fmt"
	"syscall"
)

func share(string, string, syscall.RawConn) error {
	return fmt.Errorf("a port of several processes: %w", errors.ErrUnsupported)
}

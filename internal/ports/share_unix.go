//go:build unix && !solaris

package ports

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// share sets SO_REUSEPORT.
func share(_, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	})
	return errors.Join(err, failed)
}

//go:build !linux

package transport

import "syscall"

// controlSocket is called before a socket is connected.
func controlSocket(_, _ string, _ syscall.RawConn) error { return nil }

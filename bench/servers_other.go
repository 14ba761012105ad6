//go:build !linux

package bench

import "syscall"

// endWithParent keeps a terminal's interrupt away from a process that is started.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

//go:build !linux

package bench

import "syscall"

// endWithParent shields a started process from a terminal's interrupt.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

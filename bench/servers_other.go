//go:build !linux

package bench

import "syscall"

// EndWithParent shields a started process from a terminal's interrupt.
func EndWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

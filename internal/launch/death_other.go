//go:build !linux

package launch

import "syscall"

// attributes are the system's own: without Linux, members end with their launcher through
// the pipe that [WatchParent] reads.
func attributes() *syscall.SysProcAttr { return nil }

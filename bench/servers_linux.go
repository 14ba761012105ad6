package bench

import "syscall"

// EndWithParent has the kernel kill a process when the thread that starts it ends, and shields it from a terminal's
// interrupt: it is stopped after the figures are taken.
func EndWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

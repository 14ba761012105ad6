package bench

import "syscall"

// endWithParent has the kernel kill a process when the thread that started it ends, and shields it from a terminal's
// interrupt: it is stopped after the figures are taken.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

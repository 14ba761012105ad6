package launch

import "syscall"

// attributes put a member into a process group of its own, so that Ctrl-C in a terminal reaches the launcher alone,
// and have the kernel kill it when the thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

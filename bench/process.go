package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// Process is a program that this one started. It ends with this one; on Linux also if this one is killed with SIGKILL.
// Its methods must not be called concurrently, except [Process.Ended] and [Process.Failed], which may be called during
// each method but [Process.Restart].
type Process struct {
	argv  []string
	log   string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// StartProcess starts a program, which writes to a log of its own. The log is made, or continued.
func StartProcess(executable string, args []string, log string) (*Process, error) {
	p := &Process{argv: append([]string{executable}, args...), log: log}
	return p, p.Restart()
}

// Restart starts the program again, which must have ended.
func (p *Process) Restart() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own copy
	cmd, ended := exec.Command(p.argv[0], p.argv[1:]...), make(chan struct{})
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, EndWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process ends with the thread that started it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // ProcessState has the same
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.cmd, p.ended = cmd, ended
	return nil
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Failed returns an error with the end of the log if the process has ended.
func (p *Process) Failed() error {
	select {
	case <-p.ended:
		return fmt.Errorf("ended (%s): %s", p.cmd.ProcessState, lastLines(p.log))
	default:
		return nil
	}
}

// Kill ends the process with SIGKILL, and waits for that.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Stop ends the process with SIGTERM, with SIGKILL when ctx ends, and waits for that.
func (p *Process) Stop(ctx context.Context) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.Kill()
	}
}

// lastLines returns the end of a file.
func lastLines(path string) string {
	data, _ := os.ReadFile(path)
	return lastOf(data)
}

// lastOf returns the end of a process's output.
func lastOf(data []byte) string {
	if len(data) > 1000 {
		data = data[len(data)-1000:]
	}
	return strings.TrimSpace(string(data))
}

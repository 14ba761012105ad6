package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// parentVariable names the file descriptor of the pipe that ends with the launcher.
const parentVariable = "BRAID_PARENT_FD"

// order is a line of JSON in the pipe from the launcher.
type order struct {
	Net *string `json:"net,omitempty"` // how links are emulated from now on
}

// WatchParent calls ended when the launcher that started this process has ended, and net (may be nil) with each new
// emulation of links that the launcher sends. It does nothing in a process that no launcher started.
func WatchParent(ended func(), net func(spec string)) {
	fd, err := strconv.Atoi(os.Getenv(parentVariable))
	if err != nil || fd < 3 {
		return
	}
	os.Unsetenv(parentVariable)
	pipe := os.NewFile(uintptr(fd), "launcher")
	go func() {
		defer pipe.Close()
		for orders := json.NewDecoder(pipe); ; {
			var o order
			if err := orders.Decode(&o); err != nil {
				break
			}
			if o.Net != nil && net != nil {
				net(*o.Net)
			}
		}
		io.Copy(io.Discard, pipe) // after an order that this program does not understand, until the end
		ended()
	}()
}

// process is one incarnation of a member.
type process struct {
	cmd      *exec.Cmd
	log      *os.File
	logStart int64    // the start of this incarnation in the log
	alive    *os.File // our end of the pipe that WatchParent reads
	ended    chan struct{}
}

// maxLogBytes is the size at which a member's log is set aside at its next start.
const maxLogBytes = 64 << 20

// start starts a member. The calling goroutine must be locked to its thread and stay until
// the process has ended: on Linux the process dies with the thread.
func start(argv []string, logFile string) (*process, error) {
	if info, err := os.Stat(logFile); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(logFile, logFile+".old"); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{log: log, ended: make(chan struct{}), cmd: exec.Command(argv[0], argv[1:]...)}
	if p.logStart, err = log.Seek(0, io.SeekEnd); err != nil {
		log.Close()
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		log.Close()
		return nil, err
	}
	defer theirs.Close()
	p.alive = ours
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.ExtraFiles = []*os.File{theirs} // descriptor 3
	p.cmd.Env = append(os.Environ(), parentVariable+"=3")
	p.cmd.SysProcAttr = attributes()
	if err := p.cmd.Start(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// ExitFinal is the exit code of a member that need not be started again.
const ExitFinal = 3

// wait returns a description of the process's end, whether it is permanent, and the last lines that it logged.
func (p *process) wait() (how string, final bool, lastLines []string) {
	err := p.cmd.Wait()
	close(p.ended)
	lastLines = p.tail(10)
	p.close()
	return describe(err), p.cmd.ProcessState.ExitCode() == ExitFinal, lastLines
}

func (p *process) close() {
	p.log.Close()
	p.alive.Close()
}

// signal sends a signal. It is no error if the process has ended.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// sendTimeout bounds the time for which a process that does not read delays its launcher.
const sendTimeout = time.Second

// send sends an order to the process. It is no error if the process has ended.
func (p *process) send(o order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_ = p.alive.SetWriteDeadline(time.Now().Add(sendTimeout)) // fails only if the pipe is closed, as Write does
	_, err = p.alive.Write(append(line, '\n'))
	if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func describe(err error) string {
	var exit *exec.ExitError
	if err == nil {
		return "ended"
	}
	if !errors.As(err, &exit) {
		return err.Error()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("ended with exit code %d", exit.ExitCode())
}

// tail returns at most n last lines of this incarnation's log.
func (p *process) tail(n int) []string {
	const most = 16 << 10
	end, err := p.log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	from := max(p.logStart, end-most)
	data := make([]byte, end-from)
	if _, err := p.log.ReadAt(data, from); err != nil {
		return nil
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-n):]
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines
}

// printable returns a line with escapes in place of bytes that a terminal would not show as text.
func printable(line string) string {
	var b strings.Builder
	for len(line) > 0 {
		r, size := utf8.DecodeRuneInString(line)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, line[0])
		case unicode.IsPrint(r) || r == '\t':
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		line = line[size:]
	}
	return b.String()
}

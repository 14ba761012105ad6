package embed

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Variables of the environment.
const (
	ProgramVariable = "BRAID_PROGRAM"  // the path of braid
	FlagsVariable   = "BRAID_UP_FLAGS" // of braid up, separated by spaces
)

// parentVariable names the descriptor of a pipe. Braid stops when the other end is closed: see internal/launch.
const parentVariable = "BRAID_PARENT_FD"

// stopTimeout bounds how long a cluster takes to stop.
const stopTimeout = 30 * time.Second

// up is a process of `braid up`.
type up struct {
	cmd    *exec.Cmd
	log    string
	alive  *os.File // our end of the pipe
	closed sync.Once

	urls   []string      // where members serve clients; set before ready is closed
	ready  chan struct{} // closed when all members are ready
	faults chan error    // closed when the process has ended
	ended  chan struct{}
}

// start returns when all members are ready. `braid up` bounds how long that takes.
func start(config *Config) (*up, error) {
	environment, err := config.environment()
	if err != nil {
		return nil, err
	}
	args := []string{"up", "--json", "--base-port=0", "--data=" + filepath.Join(config.Dir, "braid")}
	u := &up{
		cmd: exec.Command(os.Getenv(ProgramVariable), append(args, strings.Fields(os.Getenv(FlagsVariable))...)...),
		log: filepath.Join(config.Dir, "braid-up.log"), ready: make(chan struct{}), faults: make(chan error, 1),
		ended: make(chan struct{}),
	}
	u.cmd.Env = append(append(os.Environ(), environment...), parentVariable+"=3")
	if err := u.start(); err != nil {
		return nil, fmt.Errorf("starting %s, the program that %s names: %w", u.cmd, ProgramVariable, err)
	}
	select {
	case <-u.ready:
		return u, nil
	case <-u.ended:
		said, _ := os.ReadFile(u.log)
		return nil, fmt.Errorf("%s ended before it was ready: %s", u.cmd, said)
	}
}

func (u *up) start() error {
	stderr, err := os.Create(u.log)
	if err != nil {
		return err
	}
	defer func() { _ = stderr.Close() }()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirs.Close() }()
	u.alive, u.cmd.Stderr, u.cmd.ExtraFiles = ours, stderr, []*os.File{theirs} // descriptor 3
	stdout, err := u.cmd.StdoutPipe()
	if err == nil {
		err = u.cmd.Start()
	}
	if err != nil {
		_ = ours.Close()
		return err
	}
	go u.read(stdout)
	return nil
}

// read follows what the process says until its end.
func (u *up) read(stdout io.Reader) {
	defer close(u.ended)
	defer close(u.faults)
	stopping := false
	for lines := json.NewDecoder(stdout); ; {
		var event struct {
			Event, Member, How string
			Endpoints, Log     []string
		}
		if err := lines.Decode(&event); err != nil {
			break
		}
		switch event.Event {
		case "ready":
			for _, endpoint := range event.Endpoints {
				u.urls = append(u.urls, "http://"+endpoint)
			}
			close(u.ready)
		case "stopping":
			stopping = true
		case "died":
			u.fault(fmt.Errorf("member %s %s: %s", event.Member, event.How, strings.Join(event.Log, "\n")))
		}
	}
	if err := u.cmd.Wait(); err != nil || !stopping {
		u.fault(fmt.Errorf("%s ended: %w", u.cmd, err))
	}
}

// fault keeps the first fault.
func (u *up) fault(err error) {
	select {
	case u.faults <- err:
	default:
	}
}

// stop ends the process, by force if it takes too long, and waits for that.
func (u *up) stop() {
	u.closed.Do(func() { _ = u.alive.Close() })
	force := time.AfterFunc(stopTimeout, func() { _ = u.cmd.Process.Kill() })
	defer force.Stop()
	<-u.ended
}

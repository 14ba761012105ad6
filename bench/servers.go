package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/braidlog/braid/internal/ports"
)

// ServerKind is a server that the benchmark can start as processes on this machine.
type ServerKind struct {
	Name string
	// Protocol is the one of braid's own that it runs; empty: none.
	Protocol string
	// Args are the arguments before the flags, which are etcd's.
	Args []string
	// API is the protocol of its clients: EtcdAPI unless set.
	API string
	// Flags are further flags: limits that the load needs.
	Flags []string
	// Rival indicates that the program of rivals starts it, not braid's own.
	Rival bool
}

// Servers are a cluster of server processes, on loopback and with a directory each.
type Servers struct {
	Endpoints []string
	PIDs      []int
	logs      []string
	exits     []chan error // of each process, closed after it ended
	procs     []*os.Process
	release   chan struct{}
}

// StartServers starts a cluster of processes of an executable and waits until it has a leader. The directory must be
// empty. The processes end with this one, even if it crashes.
func StartServers(ctx context.Context, executable string, kind ServerKind, nodes int, dir string) (*Servers, error) {
	free, err := ports.Free("127.0.0.1", 2*nodes)
	if err != nil {
		return nil, err
	}
	s := &Servers{release: make(chan struct{})}
	var peers []string
	for i := range nodes {
		s.Endpoints = append(s.Endpoints, fmt.Sprintf("127.0.0.1:%d", free[i]))
		peers = append(peers, fmt.Sprintf("m%d=http://127.0.0.1:%d", i+1, free[nodes+i]))
	}
	started := make(chan error)
	go s.hold(func() error {
		for i := range nodes {
			_, peerURL, _ := strings.Cut(peers[i], "=")
			args := append(append([]string(nil), kind.Args...),
				"--name", fmt.Sprintf("m%d", i+1), "--data-dir", filepath.Join(dir, fmt.Sprintf("m%d", i+1)),
				"--listen-client-urls", "http://"+s.Endpoints[i], "--advertise-client-urls", "http://"+s.Endpoints[i],
				"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
				"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", "bench")
			args = append(args, kind.Flags...)
			if err := s.startOne(executable, args, filepath.Join(dir, fmt.Sprintf("m%d.log", i+1))); err != nil {
				return err
			}
		}
		return nil
	}, started)
	if err := <-started; err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting %s: %w", kind.Name, err)
	}
	if err := awaitServers(ctx, kind.API, s.Endpoints, s.failed); err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting %s: %w", kind.Name, err)
	}
	return s, nil
}

// hold starts the processes and keeps its thread: their parent-death signal is bound to that.
func (s *Servers) hold(start func() error, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started <- start()
	<-s.release
}

func (s *Servers) startOne(executable string, args []string, log string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own copy
	cmd := exec.Command(executable, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = endWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	exit := make(chan error, 1)
	go func() { exit <- cmd.Wait(); close(exit) }()
	s.procs = append(s.procs, cmd.Process)
	s.PIDs = append(s.PIDs, cmd.Process.Pid)
	s.exits = append(s.exits, exit)
	s.logs = append(s.logs, log)
	return nil
}

// failed returns an error with the end of its log if a process has ended.
func (s *Servers) failed() error {
	for i, exit := range s.exits {
		select {
		case err := <-exit:
			return fmt.Errorf("member %d ended (%v): %s", i+1, err, lastLines(s.logs[i]))
		default:
		}
	}
	return nil
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

// Stop ends all processes: gracefully, and after ten seconds by force.
func (s *Servers) Stop() {
	defer close(s.release)
	for _, p := range s.procs {
		_ = p.Signal(syscall.SIGTERM)
	}
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	expired := false
	for i, exit := range s.exits {
		if !expired {
			select {
			case <-exit:
				continue
			case <-limit.C:
				expired = true
			}
		}
		_ = s.procs[i].Kill()
		<-exit
	}
}

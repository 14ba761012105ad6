package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	// Bare indicates that it answers at once, without a log, and stores nothing.
	Bare bool
	// Rival indicates that the program of rivals starts it, not braid's own.
	Rival bool
}

// Servers are a cluster of server processes, on loopback and with a directory each.
type Servers struct {
	Endpoints []string
	PIDs      []int
	members   []*Process
}

// StartServers starts a cluster of processes of an executable and waits until it has a leader. The directory must be
// empty. The processes end with this one, even if it crashes.
func StartServers(ctx context.Context, executable string, kind ServerKind, nodes int, dir string) (*Servers, error) {
	free, err := ports.Free("127.0.0.1", 2*nodes)
	if err != nil {
		return nil, err
	}
	s := &Servers{}
	var peers []string
	for i := range nodes {
		s.Endpoints = append(s.Endpoints, fmt.Sprintf("127.0.0.1:%d", free[i]))
		peers = append(peers, fmt.Sprintf("m%d=http://127.0.0.1:%d", i+1, free[nodes+i]))
	}
	for i := range nodes {
		_, peerURL, _ := strings.Cut(peers[i], "=")
		args := append(append([]string(nil), kind.Args...),
			"--name", fmt.Sprintf("m%d", i+1), "--data-dir", filepath.Join(dir, fmt.Sprintf("m%d", i+1)),
			"--listen-client-urls", "http://"+s.Endpoints[i], "--advertise-client-urls", "http://"+s.Endpoints[i],
			"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", "bench")
		args = append(args, kind.Flags...)
		p, err := StartProcess(executable, args, filepath.Join(dir, fmt.Sprintf("m%d.log", i+1)))
		if err != nil {
			s.Stop()
			return nil, fmt.Errorf("starting %s: %w", kind.Name, err)
		}
		s.members, s.PIDs = append(s.members, p), append(s.PIDs, p.PID())
	}
	if err := awaitServers(ctx, kind.API, s.Endpoints, s.failed); err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting %s: %w", kind.Name, err)
	}
	return s, nil
}

// failed returns an error with the end of its log if a process has ended.
func (s *Servers) failed() error {
	for i, p := range s.members {
		if err := p.Failed(); err != nil {
			return fmt.Errorf("member %d %w", i+1, err)
		}
	}
	return nil
}

// Leader returns the index of the member that leads, -1 if none is known or a member does not answer.
func (s *Servers) Leader(ctx context.Context) int {
	c, err := probe(ctx, EtcdAPI, s.Endpoints, nil)
	if err != nil {
		return -1
	}
	return c.leader
}

// Kill ends a member's process at once, as a crash does, and waits for its end.
func (s *Servers) Kill(member int) { s.members[member].Kill() }

// Restart starts the process of a member that was killed, and returns without waiting for the member to serve.
func (s *Servers) Restart(member int) error {
	if err := s.members[member].Restart(); err != nil {
		return fmt.Errorf("member %d: %w", member+1, err)
	}
	s.PIDs[member] = s.members[member].PID()
	return nil
}

// Ready waits until every member serves and knows a leader, at most half a minute.
func (s *Servers) Ready(ctx context.Context) error {
	return awaitServers(ctx, EtcdAPI, s.Endpoints, s.failed)
}

// Stop ends all processes: gracefully, and after ten seconds by force.
func (s *Servers) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range s.members {
		all.Go(func() { p.Stop(ctx) })
	}
	all.Wait()
}

// CopyLogs copies the logs of all members to a folder.
func (s *Servers) CopyLogs(dir string) error {
	var errs []error
	for _, p := range s.members {
		said, err := os.ReadFile(p.log)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(p.log)), said, 0o600)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// cluster is one that braid up runs as a process.
type cluster struct {
	dashboard string   // URL
	endpoints []string // of the members
	urls      map[string]string

	process *exec.Cmd
	ended   chan error
}

// event is a line that braid up --json prints.
type event struct {
	Event     string   `json:"event"`
	Member    string   `json:"member"`
	Client    string   `json:"client_url"`
	Endpoints []string `json:"endpoints"`
	Dashboard string   `json:"dashboard"`
}

// startCluster starts a cluster in dir with flags of braid up, and waits until it is ready.
func startCluster(program, dir string, flags ...string) (*cluster, error) {
	c := &cluster{urls: map[string]string{}, ended: make(chan error, 1)}
	c.process = exec.Command(program, append([]string{"up", "--json", "--base-port", "0", "--data", dir}, flags...)...)
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.process.Stderr = io.Discard
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		c.read(out, ready)
		c.ended <- c.process.Wait()
	}()
	select {
	case <-ready:
		return c, nil
	case err := <-c.ended:
		return nil, fmt.Errorf("%s up %v ended before it was ready: %w", program, flags, errors.Join(err))
	case <-time.After(time.Minute):
		return nil, errors.Join(errors.New("the cluster is not ready within a minute"), c.stop())
	}
}

// read reads what braid up prints, and closes ready when the cluster is.
func (c *cluster) read(out io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Event == "started" && ready != nil:
			c.urls[e.Member] = e.Client
		case e.Event == "ready" && ready != nil:
			c.dashboard, c.endpoints = e.Dashboard, e.Endpoints
			close(ready)
			ready = nil
		}
	}
}

// stop ends the cluster. It waits until its processes have ended.
func (c *cluster) stop() error {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(30 * time.Second):
		return errors.Join(errors.New("the cluster has not ended after 30 s"), c.process.Process.Kill())
	}
}

// ctl runs braid ctl on the cluster.
func (c *cluster) ctl(ctx context.Context, args ...string) error {
	args = append([]string{"ctl", "--endpoints", c.endpoints[0]}, args...)
	if out, err := exec.CommandContext(ctx, c.process.Path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("braid %v: %w: %s", args, err, out)
	}
	return nil
}

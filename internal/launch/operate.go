package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// State is the state of a member's process.
type State string

// States of members.
const (
	IsStarting State = "starting" // it is about to start, or does not serve yet
	IsRunning  State = "running"
	IsPaused   State = "paused"
	IsDead     State = "dead"
)

// Condition is a member and its process.
type Condition struct {
	Member
	State State
	PID   int // 0: no process
}

// UnknownError names a member that the cluster does not have. Nothing was done.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("there is no member %q", e.Name) }

// StateError is an operation that a member's state does not allow. Nothing was done.
type StateError struct {
	Name string
	Why  string // as "is paused"
}

func (e *StateError) Error() string { return e.Name + " " + e.Why }

// ErrNotRunning indicates that the cluster starts or stops. Nothing was done; a retry is safe.
var ErrNotRunning = errors.New("the cluster is not running: it starts or stops")

// phase is how far Run has come.
type phase int

const (
	isStarting phase = iota
	isReady
	isStopping
)

// condition is the state of a member's process as far as it is known.
type condition struct {
	p       *process      // nil: none
	ended   chan struct{} // closed when p has become nil
	net     string        // the emulation of links that was sent to it
	healthy bool
	paused  bool
	asked   bool // Start was called and the process does not run yet
	killed  bool // by Kill, and not started since
	over    bool // the supervisor waits for Start
	left    bool // it was removed from the cluster
}

func (c *condition) state() State {
	switch {
	case c.p == nil && c.asked:
		return IsStarting
	case c.p == nil:
		return IsDead
	case c.paused:
		return IsPaused
	case c.healthy:
		return IsRunning
	}
	return IsStarting
}

// Conditions returns the members and the states of their processes, in the order of the members.
func (c *Cluster) Conditions() (all []Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		at := Condition{Member: m.Member, State: m.state()}
		if m.p != nil {
			at.PID = m.p.cmd.Process.Pid
		}
		all = append(all, at)
	}
	return all
}

// operate runs do on a member of a cluster that is ready, with mu held.
func (c *Cluster) operate(name string, do func(*member) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.members, func(m *member) bool { return m.Name == name })
	switch {
	case at < 0:
		return &UnknownError{name}
	case c.phase != isReady:
		return ErrNotRunning
	case c.members[at].left:
		return &StateError{name, "was removed from the cluster"}
	}
	return do(c.members[at])
}

// Kill kills a member's process, also a paused one, and returns when it has ended or ctx has. Unless Options.Restart is
// set, the member stays dead until Start. A cluster whose members were all killed so continues without one. The error
// is an *UnknownError, a *StateError, ErrNotRunning, ctx's, or the operating system's.
func (c *Cluster) Kill(ctx context.Context, name string) error {
	var ended chan struct{}
	err := c.operate(name, func(m *member) error {
		if m.p == nil {
			return &StateError{name, "has no process"}
		}
		ended, m.killed = m.ended, true
		return m.p.signal(syscall.SIGKILL)
	})
	if err != nil {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start starts a dead member. It returns before the process runs: Started is reported then, and Serving when it serves,
// or Died. The error is an *UnknownError, a *StateError or ErrNotRunning.
func (c *Cluster) Start(name string) error {
	return c.operate(name, func(m *member) error {
		if m.p != nil || m.asked {
			return &StateError{name, "has a process already"}
		}
		m.asked, m.killed, m.over = true, false, false
		select {
		case m.wake <- struct{}{}:
		default: // it is asked to already
		}
		return nil
	})
}

// Pause suspends a member's process until Resume. A paused process ends with the launcher as well. The error is an
// *UnknownError, a *StateError, ErrNotRunning, or the operating system's.
func (c *Cluster) Pause(name string) error {
	return c.signal(name, Paused, syscall.SIGSTOP, true)
}

// Resume ends Pause. Errors are as those of Pause.
func (c *Cluster) Resume(name string) error {
	return c.signal(name, Resumed, syscall.SIGCONT, false)
}

// signal pauses or resumes a member's process.
func (c *Cluster) signal(name string, kind EventKind, s syscall.Signal, pause bool) error {
	var e Event
	err := c.operate(name, func(m *member) error {
		switch {
		case m.p == nil:
			return &StateError{name, "has no process"}
		case pause && m.paused:
			return &StateError{name, "is paused already"}
		case !pause && !m.paused:
			return &StateError{name, "is not paused"}
		}
		if err := m.p.signal(s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.paused = pause
		e = Event{Kind: kind, Member: m.Member, PID: m.p.cmd.Process.Pid}
		return m.sendNet()
	})
	if e.Kind != "" {
		c.report(e)
	}
	return err
}

// Relink replaces Spec.Net as the emulation of links on all members: at once on those that run, on others when they are
// resumed or start. The data directory keeps Spec.Net. name is the member whose links change, and how describes the
// change, both for the event. The error is an *UnknownError, a *StateError, ErrNotRunning, or of the members that it
// could not be sent to; a retry is safe.
func (c *Cluster) Relink(name, net, how string) error {
	var e Event
	err := c.operate(name, func(m *member) error {
		c.net = net
		e = Event{Kind: Relinked, Member: m.Member, How: how}
		var errs []error
		for _, m := range c.members {
			errs = append(errs, m.sendNet())
		}
		return errors.Join(errs...)
	})
	if e.Kind != "" {
		c.report(e)
	}
	return err
}

// sendNet sends the emulation of links to the member's process, if it runs with another one. Cluster.mu is held.
func (m *member) sendNet() error {
	net := m.c.net
	if m.p == nil || m.paused || m.net == net {
		return nil
	}
	if err := m.p.send(order{Net: &net}); err != nil {
		return fmt.Errorf("%s does not have the new emulation of its links: %w", m.Name, err)
	}
	m.net = net
	return nil
}

// recordStart records that a process runs, which was started with an emulation of links.
func (m *member) recordStart(p *process, net string) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.condition = condition{p: p, ended: make(chan struct{}), net: net, left: m.left}
	_ = m.sendNet() // it reads as soon as it runs, and Relink can be repeated
	select {
	case <-m.wake: // of a Start since which the member was started for another reason
	default:
	}
}

// recordEnd records that none runs any more.
func (m *member) recordEnd() {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.p != nil {
		close(m.ended)
	}
	m.p, m.paused, m.healthy, m.asked = nil, false, false, false
}

// recordServing records that the member serves.
func (m *member) recordServing() {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.healthy = m.p != nil
}

func (c *Cluster) enter(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

func (c *Cluster) hasLeft(m *member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.left
}

// lost reports whether every member ended permanently and none of them by Kill.
func (c *Cluster) lost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.members, func(m *member) bool { return !m.over || m.killed })
}

// resumeAll resumes paused members, so that they can stop in order. Nothing is operated afterwards.
func (c *Cluster) resumeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = isStopping
	for _, m := range c.members {
		if m.paused {
			_ = m.p.signal(syscall.SIGCONT) // what does not end is killed after StopTimeout
			m.paused = false
		}
	}
}

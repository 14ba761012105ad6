package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options are the options of Run.
type Options struct {
	Dir  string // data directory; made if missing
	Spec Spec
	// Command is the command line of a member's process: the program and its arguments.
	Command func(manifest *Manifest, member Member, dir string) []string
	// Prepare, if set, fills the directory of each member of a new cluster. It is not called
	// for a directory that holds a cluster already.
	Prepare func(dir string) error
	// Fate, if set, asks the other members for the fate of a member that ended permanently when the cluster was
	// resumed. It may take until ctx ends. An error means that it is not known.
	Fate func(ctx context.Context, manifest *Manifest, member Member, dir string) (Fate, error)
	// Healthy, if set, returns what a member is still missing although its /readyz is good.
	Healthy func(ctx context.Context, member Member) error
	Restart bool // start members that die again
	// ReadyTimeout limits the time until the members are healthy.
	ReadyTimeout time.Duration
	// StopTimeout is the time after which stopping members are killed.
	StopTimeout time.Duration
	// Report is called for each event, one at a time.
	Report func(Event)
}

// EventKind is the type of an event.
type EventKind string

// Kinds of events.
const (
	Prepared EventKind = "prepared" // the manifest is known, nothing runs yet
	Started  EventKind = "started"  // a member's process runs
	Ready    EventKind = "ready"    // every member is ready by its own /readyz
	Died     EventKind = "died"     // a member's process ended unexpectedly
	Serving  EventKind = "serving"  // a member that was started again is healthy
	Replaced EventKind = "replaced" // a member starts as the new one that was added in its place
	Left     EventKind = "left"     // a member was removed from the cluster, which continues without it
	Stopping EventKind = "stopping"
	Stopped  EventKind = "stopped" // no process is left
)

// Event is an argument of Options.Report.
type Event struct {
	Kind     EventKind
	Manifest *Manifest // of Prepared and Ready
	Dir      string    // Prepared: the data directory
	Resumed  bool      // Prepared: the directory held a cluster already
	Member   Member    // of Started, Died, Serving, Replaced, Left
	PID      int       // of Started, Died, Serving
	LogFile  string    // of Started, Died
	How      string    // Died: how it ended; Left: why
	Aside    string    // Replaced: the new place of the member's old directory; "": there was none
	Log      []string  // Died: the last lines that it logged
}

// cluster is a running set of members.
type cluster struct {
	Options
	manifest *Manifest
	resumed  bool
	reports  sync.Mutex // serialises Report
	writing  sync.Mutex // held while the manifest is changed

	members []*member
	left    []string     // names of removed members
	died    chan *member // buffered for all: a member whose process ended permanently
}

// member is a member's supervisor. how, log and left are written by supervise, and read after the member was received
// from cluster.died.
type member struct {
	Member
	c    *cluster
	how  string   // how the last incarnation ended
	log  []string // its last lines
	left bool     // it was removed from the cluster
}

// Run starts the cluster and supervises it until ctx ends or no member is left. No process is left when it returns.
func Run(ctx context.Context, o Options) error {
	held, err := lock(o.Dir)
	if err != nil {
		return err
	}
	defer held.Close()
	manifest, resumed, err := loadOrCreate(o.Dir, o.Spec)
	if err == nil && !resumed && o.Prepare != nil {
		err = prepare(manifest, o)
	}
	if err != nil {
		return err
	}
	if err := manifest.waitPorts(ctx); err != nil {
		return err
	}
	c := &cluster{Options: o, manifest: manifest, resumed: resumed, died: make(chan *member, len(manifest.Members))}
	c.report(Event{Kind: Prepared, Manifest: manifest, Dir: o.Dir, Resumed: resumed})

	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, spec := range manifest.Members {
		m := &member{Member: spec, c: c}
		c.members = append(c.members, m)
		all.Go(func() { m.supervise(running) })
	}
	err = c.watch(running)
	c.report(Event{Kind: Stopping})
	stop()
	all.Wait()
	c.report(Event{Kind: Stopped})
	return err
}

// prepare fills the directories of a new cluster, or leaves nothing behind.
func prepare(m *Manifest, o Options) error {
	for _, member := range m.Members {
		if err := o.Prepare(filepath.Join(o.Dir, member.Name)); err != nil {
			return errors.Join(err, m.remove(o.Dir))
		}
	}
	return nil
}

func (c *cluster) report(e Event) {
	c.reports.Lock()
	defer c.reports.Unlock()
	if c.Report != nil {
		c.Report(e)
	}
}

// watch waits until the cluster is ready, and then until ctx ends or the last member dies.
func (c *cluster) watch(ctx context.Context) error {
	if err := c.waitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop: that is no failure
		}
		return err
	}
	now := c.now()
	c.report(Event{Kind: Ready, Manifest: now.without(c.left)})
	for left := len(c.members) - len(c.left); left > 0; left-- {
		select {
		case <-ctx.Done():
			return nil
		case <-c.died:
		}
	}
	return errors.New("no member is left")
}

// waitReady returns when every member is healthy, or with the reason why it will not be.
func (c *cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.ReadyTimeout,
		fmt.Errorf("the members were not healthy within %s", c.ReadyTimeout))
	defer cancel()
	type answer struct {
		from *member
		err  error
	}
	healthy := make(chan answer, len(c.members))
	for _, m := range c.members {
		go func() { healthy <- answer{m, m.waitHealthy(ctx)} }()
	}
	waits := map[*member]bool{}
	for _, m := range c.members {
		waits[m] = true
	}
	for len(waits) > 0 {
		select {
		case m := <-c.died:
			if !m.left {
				return fmt.Errorf("%s %s before the cluster was ready%s", m.Name, m.how, quote(m.log))
			}
			delete(waits, m)
			c.left = append(c.left, m.Name)
		case a := <-healthy:
			if a.err != nil && waits[a.from] {
				return fmt.Errorf("%w%s", context.Cause(ctx), a.err)
			}
			delete(waits, a.from)
		}
	}
	if len(c.left) == len(c.members) {
		return errors.New("no member is left")
	}
	return nil
}

// quote shows the last lines of a member's log below a message.
func quote(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return ":\n    " + strings.Join(lines, "\n    ")
}

// waitHealthy asks the member whether it is ready, which includes that it knows a leader.
func (m *member) waitHealthy(ctx context.Context) error {
	const pause = 50 * time.Millisecond
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		err := m.askReady(ctx, client)
		if err == nil && m.c.Healthy != nil {
			err = m.c.Healthy(ctx, m.Member)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("; %s: %w", m.Name, err)
		case <-time.After(pause):
		}
	}
}

func (m *member) askReady(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.ClientURL()+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // as far as it can be read
		return fmt.Errorf("%s answers %s: %s", request.URL, response.Status, strings.Join(strings.Fields(string(why)), " "))
	}
	return nil
}

// supervise runs the member until ctx ends, and restarts it if the options say so.
func (m *member) supervise(ctx context.Context) {
	runtime.LockOSThread() // see start
	const shortest, longest = 200 * time.Millisecond, 10 * time.Second
	pause := shortest
	for life := 0; ; life++ {
		began := time.Now()
		final := m.live(ctx, life > 0)
		if ctx.Err() != nil {
			return
		}
		if final && life == 0 && m.resolve(ctx) {
			continue
		}
		if !m.c.Restart || final {
			m.c.died <- m
			return
		}
		if time.Since(began) > longest {
			pause = shortest
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// live runs the member's process once, from its start to its end, and reports whether it ended
// permanently.
func (m *member) live(ctx context.Context, again bool) (final bool) {
	dir := filepath.Join(m.c.Dir, m.Name)
	logFile := dir + ".log"
	p, err := start(m.c.command(m.Name, dir), logFile)
	if err != nil {
		m.end(ctx, 0, logFile, "could not be started: "+err.Error(), nil)
		return false
	}
	pid := p.cmd.Process.Pid
	m.c.report(Event{Kind: Started, Member: m.Member, PID: pid, LogFile: logFile})

	life, ended := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { m.stopWith(ctx, life, p) })
	if again {
		helpers.Go(func() { m.reportServing(life, pid) })
	}
	how, final, lines := p.wait()
	ended()
	helpers.Wait()
	m.end(ctx, pid, logFile, how, lines)
	return final
}

// stopWith ends the process when ctx ends: politely first. It returns when incarnation ends.
func (m *member) stopWith(ctx, life context.Context, p *process) {
	<-life.Done()
	if ctx.Err() == nil {
		return // it ended on its own
	}
	p.signal(syscall.SIGTERM)
	deadline := time.NewTimer(m.c.StopTimeout)
	defer deadline.Stop()
	select {
	case <-p.ended:
	case <-deadline.C:
		p.signal(syscall.SIGKILL)
	}
}

func (m *member) reportServing(life context.Context, pid int) {
	if m.waitHealthy(life) == nil {
		m.c.report(Event{Kind: Serving, Member: m.Member, PID: pid})
	}
}

// end notes how an incarnation ended and reports it, unless it was asked to.
func (m *member) end(ctx context.Context, pid int, logFile, how string, lines []string) {
	m.how, m.log = how, lines
	if ctx.Err() == nil {
		m.c.report(Event{Kind: Died, Member: m.Member, PID: pid, LogFile: logFile, How: how, Log: lines})
	}
}

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

// Options are the options of Open.
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
	Paused   EventKind = "paused"   // a member's process was suspended by Cluster.Pause
	Resumed  EventKind = "resumed"  // it runs again
	Relinked EventKind = "relinked" // the links of a member were changed by Cluster.Relink
	Stopping EventKind = "stopping"
	Stopped  EventKind = "stopped" // no process is left
)

// Event is an argument of Options.Report.
type Event struct {
	Kind     EventKind
	Manifest *Manifest // of Prepared and Ready
	Dir      string    // Prepared: the data directory
	Resumed  bool      // Prepared: the directory held a cluster already
	Member   Member    // of Started, Died, Serving, Replaced, Left, Paused, Resumed, Relinked
	PID      int       // of Started, Died, Serving, Paused, Resumed
	LogFile  string    // of Started, Died
	How      string    // Died: how it ended; Left: why; Relinked: in words
	Aside    string    // Replaced: the new place of the member's old directory; "": there was none
	Log      []string  // Died: the last lines that it logged
}

// Cluster is a set of members, which run while Run does. Its methods may be called concurrently.
type Cluster struct {
	opt      Options
	manifest *Manifest
	resumed  bool
	held     io.Closer  // the lock of the directory
	reports  sync.Mutex // serialises Options.Report
	writing  sync.Mutex // held while the manifest is changed

	members []*member
	left    []string     // names of removed members
	died    chan *member // members whose process ended permanently

	mu    sync.Mutex // guards what follows, and the fields of members that say so
	phase phase
	net   string // how links are emulated
}

// member is a member's supervisor. how and log are written by supervise, and read before the cluster is ready after
// the member was received from Cluster.died.
type member struct {
	Member
	c    *Cluster
	how  string        // how the last incarnation ended
	log  []string      // its last lines
	wake chan struct{} // a token: it is to be started again

	condition // guarded by Cluster.mu
}

// Open locks the data directory and prepares the cluster in it, a new one if there is none. Nothing runs yet: the
// caller must call Run or Close, which release the directory.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	held, err := lock(o.Dir)
	if err != nil {
		return nil, err
	}
	manifest, resumed, err := loadOrCreate(o.Dir, o.Spec)
	if err == nil && !resumed && o.Prepare != nil {
		err = prepare(manifest, o)
	}
	if err == nil {
		err = manifest.waitPorts(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	c := &Cluster{opt: o, manifest: manifest, resumed: resumed, held: held, net: manifest.Net,
		died: make(chan *member, len(manifest.Members))}
	for _, spec := range manifest.Members {
		c.members = append(c.members, &member{Member: spec, c: c, wake: make(chan struct{}, 1)})
	}
	return c, nil
}

// Close releases the directory of a cluster that was not run.
func (c *Cluster) Close() error { return c.held.Close() }

// Manifest is the cluster's.
func (c *Cluster) Manifest() *Manifest {
	m := c.now()
	return &m
}

// Run starts the members and supervises them until ctx ends or none is left. No process is left when it returns. It is
// called once.
func (c *Cluster) Run(ctx context.Context) error {
	defer c.held.Close()
	c.report(Event{Kind: Prepared, Manifest: c.manifest, Dir: c.opt.Dir, Resumed: c.resumed})
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, m := range c.members {
		all.Go(func() { m.supervise(running) })
	}
	err := c.watch(running)
	c.report(Event{Kind: Stopping})
	c.resumeAll()
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

func (c *Cluster) report(e Event) {
	c.reports.Lock()
	defer c.reports.Unlock()
	if c.opt.Report != nil {
		c.opt.Report(e)
	}
}

// watch waits until the cluster is ready, and then until ctx ends or the last member dies.
func (c *Cluster) watch(ctx context.Context) error {
	if err := c.waitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // asked to stop: that is no failure
		}
		return err
	}
	now := c.now()
	c.enter(isReady)
	c.report(Event{Kind: Ready, Manifest: now.without(c.left)})
	for !c.lost() {
		select {
		case <-ctx.Done():
			return nil
		case <-c.died:
		}
	}
	return errors.New("no member is left")
}

// waitReady returns when every member is healthy, or with the reason why it will not be.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.ReadyTimeout,
		fmt.Errorf("the members were not healthy within %s", c.opt.ReadyTimeout))
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
			if !c.hasLeft(m) {
				return fmt.Errorf("%s %s before the cluster was ready%s", m.Name, m.how, quote(m.log))
			}
			delete(waits, m)
			c.left = append(c.left, m.Name)
		case a := <-healthy:
			if a.err != nil && waits[a.from] {
				return fmt.Errorf("%w%s", context.Cause(ctx), a.err)
			}
			delete(waits, a.from)
			a.from.recordServing()
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
		if err == nil && m.c.opt.Healthy != nil {
			err = m.c.opt.Healthy(ctx, m.Member)
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

// supervise runs the member until ctx ends. One that ended is started again if the options say so, or [Cluster.Start].
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
		var again <-chan time.Time
		if m.c.opt.Restart && !final {
			if time.Since(began) > longest {
				pause = shortest
			}
			again = time.After(pause)
			pause = min(2*pause, longest)
		} else if !m.reportEnd(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-m.wake:
		}
	}
}

// reportEnd reports to the cluster that the member ended permanently. It returns false if ctx ends.
func (m *member) reportEnd(ctx context.Context) bool {
	m.c.mu.Lock()
	m.over = true
	m.c.mu.Unlock()
	select {
	case m.c.died <- m:
		return true
	case <-ctx.Done():
		return false
	}
}

// live runs the member's process once, from its start to its end, and reports whether it ended
// permanently.
func (m *member) live(ctx context.Context, again bool) (final bool) {
	dir := filepath.Join(m.c.opt.Dir, m.Name)
	logFile := dir + ".log"
	argv, net := m.c.command(m.Name, dir)
	p, err := start(argv, logFile)
	if err != nil {
		m.recordEnd()
		m.end(ctx, 0, logFile, "could not be started: "+err.Error(), nil)
		return false
	}
	pid := p.cmd.Process.Pid
	m.recordStart(p, net)
	m.c.report(Event{Kind: Started, Member: m.Member, PID: pid, LogFile: logFile})

	life, ended := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { m.stopWith(ctx, life, p) })
	if again {
		helpers.Go(func() { m.reportServing(life, pid) })
	}
	how, final, lines := p.wait()
	m.recordEnd()
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
	deadline := time.NewTimer(m.c.opt.StopTimeout)
	defer deadline.Stop()
	select {
	case <-p.ended:
	case <-deadline.C:
		p.signal(syscall.SIGKILL)
	}
}

func (m *member) reportServing(life context.Context, pid int) {
	if m.waitHealthy(life) == nil {
		m.recordServing()
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

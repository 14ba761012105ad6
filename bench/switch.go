package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/transport/netspec"
)

// SwitchConfig measures running clusters that change their protocol.
type SwitchConfig struct {
	// From and To are names of protocols: each of the first is changed to each of the second, if it is another one.
	From, To   []string
	Nodes      int
	Net        string // emulated links between the members, as the flag --net
	Executable string // braid's own
	Dir        string // for the members' directories
	Clients    int    // goroutines, each with one request at a time
	Keys       int    // number of different keys
	ValSize    int    // bytes of a value
	// LargeShare of the values have LargeSize bytes.
	LargeSize  int
	LargeShare float64
	// Transactions and Reads are shares of the requests; the others are puts.
	Transactions, Reads float64
	// Throttle, unless 0, bounds the requests a second over all clients.
	Throttle float64
	// Settle passes after each switch before the throughput is measured for Window.
	Settle, Window time.Duration
	// Timeout bounds one switch.
	Timeout time.Duration
	// Born also measures, after each switch, a cluster that began with the protocol.
	Born       bool
	CheckLimit time.Duration // of the check of each cluster's history
	Seed       uint64
	// Switch asks a member to change the protocol, and returns when it has.
	Switch func(ctx context.Context, member grpc.ClientConnInterface, protocol string) error
	// Progress, unless nil, gets a line after each step.
	Progress func(line string)
}

// Switchable returns the protocols between which a running cluster can be switched.
func Switchable() []string {
	all := []string{"raft", "craft", "lcr", "niagara", "multi-paxos", "iss"}
	return slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(registry.Serving(), name) })
}

// Validate returns an error that says what is wrong with the configuration.
func (c *SwitchConfig) Validate() error {
	for _, name := range slices.Concat(c.From, c.To) {
		if !slices.Contains(Switchable(), name) {
			return fmt.Errorf("protocol %q: there are %s", name, strings.Join(Switchable(), ", "))
		}
	}
	switch {
	case len(c.pairs()) == 0:
		return errors.New("nothing to switch: give another protocol to switch to than to switch from")
	case c.Nodes < 1 || c.Nodes > 15:
		return fmt.Errorf("%d members: must be between 1 and 15", c.Nodes)
	case c.Clients < c.Nodes:
		return fmt.Errorf("%d clients for %d members: each member needs one", c.Clients, c.Nodes)
	case c.Transactions < 0 || c.Reads < 0 || !(c.Transactions+c.Reads < 1):
		return fmt.Errorf("shares of %g transactions and %g reads: there are no puts left", c.Transactions, c.Reads)
	case !(c.LargeShare >= 0 && c.LargeShare <= 1):
		return fmt.Errorf("a share of %g large values: must be between 0 and 1", c.LargeShare)
	case c.Settle <= 0 || c.Window <= 0 || c.Timeout <= 0:
		return errors.New("the times must be positive")
	}
	load := c.load(nil)
	return load.Validate()
}

// pairs are the switches to measure, in the order of the lists.
func (c *SwitchConfig) pairs() (pairs []switchStep) {
	for _, from := range c.From {
		for _, to := range c.To {
			if step := (switchStep{From: from, To: to}); from != to && !slices.Contains(pairs, step) {
				pairs = append(pairs, step)
			}
		}
	}
	return pairs
}

// load is the load of the clients.
func (c *SwitchConfig) load(servers *Servers) KVConfig {
	var mix workload.Mix
	mix[workload.Read], mix[workload.ReadModifyWrite] = c.Reads, c.Transactions
	mix[workload.Update] = 1 - c.Reads - c.Transactions
	const prefix = "switch/"
	l := KVConfig{Protocol: "switch", Clients: c.Clients, Conns: c.Clients, Duration: c.Window, KeyPrefix: prefix,
		KeySize: len(prefix) + 8, Throttle: c.Throttle, Check: true, CheckLimit: c.CheckLimit}
	largest := c.ValSize
	if c.LargeShare > 0 {
		largest = max(largest, c.LargeSize)
	}
	l.Workload = workload.Spec{Mix: mix, KeySpace: c.Keys, Seed: c.Seed,
		Values: workload.Sizes{Min: c.ValSize, Max: largest}}
	if servers != nil {
		l.Endpoints, l.Servers = servers.Endpoints, servers.PIDs
	}
	return l
}

// switchRun is a run in progress.
type switchRun struct {
	SwitchConfig
	out       *SwitchResult
	roundTrip time.Duration // between the farthest members, 0: links are not emulated
	cluster   *switchCluster
	steady    switchWindow // of the cluster with its protocol
}

// switchCluster is a cluster and its load.
type switchCluster struct {
	servers  *Servers
	dir      string
	load     *switchLoad
	protocol string
}

// RunSwitch makes all switches, as many as possible one after the other in one cluster. When ctx ends, the result is of
// the switches before.
func RunSwitch(ctx context.Context, c SwitchConfig) (*SwitchResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &switchRun{SwitchConfig: c, out: newSwitchResult(&c)}
	if c.Net != "" {
		net, err := netspec.Parse(c.Net)
		if err != nil {
			return nil, err
		}
		r.roundTrip = 2 * net.Farthest()
		r.out.RoundTripMS = ms(r.roundTrip)
	}
	meter := StartCPUMeter()
	err := r.walk(ctx)
	r.leave()
	r.out.CPUShares = meter.Shares() // all servers have ended
	r.out.finish(c.pairs())
	return r.out, err
}

// walk makes the switches.
func (r *switchRun) walk(ctx context.Context) error {
	steps := switchPath(r.pairs())
	for i, step := range steps {
		if r.cluster == nil || r.cluster.protocol != step.From {
			r.leave()
			if err := r.begin(ctx, step.From); err != nil {
				return err
			}
		}
		pair, err := r.change(ctx, step)
		if err != nil {
			return err
		}
		r.progress("%d of %d: %s", i+1, len(steps), &pair)
		if !step.extra {
			r.out.Pairs = append(r.out.Pairs, pair)
		}
		if pair.Failed != "" {
			r.leave()
		}
	}
	return nil
}

// begin starts a cluster and its load, and measures it.
func (r *switchRun) begin(ctx context.Context, protocol string) (err error) {
	if r.cluster, err = r.open(ctx, protocol); err != nil {
		return err
	}
	r.out.Clusters++
	r.steady, err = r.cluster.load.measure(ctx, r.Settle, r.Window)
	return err
}

// open starts a cluster and its load.
func (r *switchRun) open(ctx context.Context, protocol string) (*switchCluster, error) {
	dir, err := os.MkdirTemp(r.Dir, protocol+"-")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	kind, load := serving(protocol), r.load(nil)
	kind.Flags = kind.limits(&load)
	if r.Net != "" {
		kind.Flags = append(kind.Flags, "--net", r.Net)
	}
	servers, err := StartServers(ctx, r.Executable, kind, r.Nodes, dir)
	if err != nil {
		return nil, err
	}
	cluster := &switchCluster{servers: servers, dir: dir, protocol: protocol}
	cluster.load, err = startSwitchLoad(ctx, r.load(servers), &r.SwitchConfig)
	if err != nil {
		servers.Stop()
		return nil, fmt.Errorf("%s: %w", protocol, err)
	}
	return cluster, nil
}

// leave ends the cluster, if there is one, and checks its history.
func (r *switchRun) leave() {
	c := r.cluster
	if c == nil {
		return
	}
	r.cluster = nil
	r.progress("checking the history of the cluster")
	verdict, violations := c.load.finish()
	c.servers.Stop()
	r.out.Histories = append(r.out.Histories, verdict)
	r.out.Violations = append(r.out.Violations, violations...)
}

// change makes one switch under load.
func (r *switchRun) change(ctx context.Context, step switchStep) (SwitchPair, error) {
	c, before := r.cluster, r.steady
	l := c.load
	pair := SwitchPair{From: step.From, To: step.To, BeforePS: before.perSecond, SteadyPauseMS: ms(before.pause),
		At: time.Now().UTC()}
	from := l.now()
	failure := r.command(ctx, step.To)
	answered := l.now()
	pair.SwitchMS = ms(time.Duration(answered - from))
	if ctx.Err() != nil {
		return pair, ctx.Err()
	}
	var err error
	if failure != nil {
		pair.Failed = failure.Error()
	} else {
		c.protocol = step.To
		if r.steady, err = l.measure(ctx, r.Settle, r.Window); err != nil {
			return pair, err
		}
		pair.AfterPS = r.steady.perSecond
	}
	l.around(&pair, from, min(l.now(), answered+int64(r.Settle)))
	if r.roundTrip > 0 {
		pair.PauseRoundTrips = pair.PauseMS / ms(r.roundTrip)
	}
	if r.Born && pair.Failed == "" && !step.extra {
		if pair.BornPS, err = r.born(ctx, step.To); pair.BornPS > 0 {
			pair.AfterOfBorn = pair.AfterPS / pair.BornPS
		}
		if err == nil { // the clients are back before the next switch
			_, err = l.measure(ctx, r.Settle, r.Window)
		}
	}
	return pair, errors.Join(err, l.refusal(), c.servers.failed())
}

// command asks the members one after the other until one has made the switch.
func (r *switchRun) command(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	for i := 0; ; i++ {
		target := r.cluster.load.run.targets[i%r.Nodes]
		err := r.Switch(ctx, target.conn, to)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("no answer within %v: %w", r.Timeout, err)
		case grpcstatus.Code(err) != codes.Unavailable:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// born returns the throughput of another cluster that begins with a protocol, while the first is without load.
func (r *switchRun) born(ctx context.Context, protocol string) (perSecond float64, err error) {
	defer r.cluster.load.pause()()
	c, err := r.open(ctx, protocol)
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(c.dir) }()
	defer c.servers.Stop()
	defer c.load.end()
	w, err := c.load.measure(ctx, r.Settle, r.Window)
	return w.perSecond, err
}

func (r *switchRun) progress(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// ms returns milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

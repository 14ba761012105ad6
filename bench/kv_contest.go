package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench/workload"
)

// KVContestConfig compares servers that the benchmark starts itself, one after the other.
type KVContestConfig struct {
	Contest
	Load KVConfig // without endpoints
	// Shape is the configuration of niagara; its protocol is the server's. Compared servers get the settings of it that
	// they have.
	Shape Shape
	// Net emulates links between the members of a cluster, as the flag --net. Only braid's own
	// servers have that.
	Net string
}

// KVContest is the outcome of several servers under the same load.
type KVContest struct {
	// KVResult is the first server's: in JSON a contest has the fields of a single run.
	*KVResult
	Results []*KVResult `json:"results"` // medians over the rounds
	Comparison
	Runs [][]*KVResult `json:"runs"` // by server
}

// Validate returns an error that says what is wrong with the configuration.
func (c *KVContestConfig) Validate() error {
	if err := c.Contest.validate(); err != nil {
		return err
	}
	if first := c.shape(serverKinds[c.Servers[0]]); first != (Shape{}) {
		if err := first.Apply(&braid.Options{}); err != nil {
			return fmt.Errorf("%s: %w", c.Servers[0], err)
		}
	}
	for _, s := range c.Servers {
		if c.Net != "" && serverKinds[s].Protocol == "" {
			return fmt.Errorf("links %q: those of %s are not emulated", c.Net, s)
		}
		kind, load := serverKinds[s], c.Load
		load.API = kind.API
		if err := errors.Join(load.Validate(), kind.suits(&load)); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// suits returns an error if the server cannot be measured with a load because it stores nothing.
func (k *ServerKind) suits(load *KVConfig) error {
	mix := &load.Workload.Mix
	switch {
	case !k.Bare:
		return nil
	case load.Check:
		return errors.New("it stores nothing, so there is no history to check: measure it without the check")
	case k.API == EtcdAPI &&
		mix[workload.Scan]+mix[workload.ReadModifyWrite]+mix[workload.Delete]+mix[workload.Grant] > 0:
		return errors.New("it answers puts, and gets of one key: measure it without scans, read-modify-writes, " +
			"deletes and grants")
	}
	return nil
}

// shape returns the configuration of a server; zero if none is given.
func (c *KVContestConfig) shape(kind ServerKind) Shape {
	s := c.Shape
	if s == (Shape{}) {
		return s
	}
	s.Protocol = kind.Protocol
	return s
}

// RunKVContest runs the servers in rounds. When ctx ends, or a run fails, the result is of
// the runs before, nil if there are none.
func RunKVContest(ctx context.Context, c KVContestConfig) (*KVContest, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	runs, err := Alternate(ctx, len(c.Servers), c.Rounds, func(ctx context.Context, i int) (*KVResult, error) {
		return c.runOne(ctx, c.Servers[i])
	})
	out := &KVContest{}
	out.Runs, out.Results = medians(runs, medianKVResult)
	var figures []Figures
	for _, r := range out.Results {
		figures = append(figures, r.Figures)
	}
	out.Comparison = compare(figures)
	if len(out.Results) == 0 {
		return nil, err
	}
	out.KVResult = out.Results[0]
	return out, err
}

// runOne starts a cluster, loads it and stops it.
func (c *KVContestConfig) runOne(ctx context.Context, name string) (r *KVResult, err error) {
	kind := serverKinds[name]
	flags := slices.Concat(kind.limits(&c.Load), c.shape(kind).Only().flags())
	if c.Net != "" {
		flags = append(flags, "--net", c.Net)
	}
	err = c.With(ctx, name, flags, func(servers *Servers) error {
		load := c.Load
		load.Protocol, load.Endpoints, load.Servers, load.API = name, servers.Endpoints, servers.PIDs, kind.API
		load.Dir = c.Dir
		load.RemoveKeys = false // they are removed with the cluster
		if r, err = RunKV(ctx, load); err != nil {
			return err
		}
		r.MemoryMB, r.OwnMB = memoryOf(servers), ownMemoryOf(servers)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Machine = DescribeMachine(c.Dir)
	return r, nil
}

// limits returns flags for the load's needs beyond etcd's defaults, which stay unless they are too low. Compared
// servers get the same.
func (k *ServerKind) limits(load *KVConfig) (flags []string) {
	const (
		usualRequest = 3 << 19 // etcd's default
		around       = 64 << 10
		// From such values on, a run of seconds can write more than etcd's default of 2 GiB.
		large = 16 << 10
	)
	if k.API != EtcdAPI {
		return nil
	}
	if need := load.Workload.Values.Max + load.KeySize + around; need > usualRequest {
		flags = append(flags, "--max-request-bytes", strconv.Itoa(need))
	}
	if load.Workload.Values.Max >= large {
		flags = append(flags, largeQuota...)
	}
	return flags
}

func medianKVResult(runs []*KVResult) *KVResult {
	m := *runs[0]
	var figures []Figures
	var client []float64
	m.Violations, m.Backlog, m.NotFound, m.Conflicts, m.LatencySamples = nil, 0, 0, 0, 0
	for _, r := range runs {
		figures = append(figures, r.Figures)
		client = append(client, r.ClientCPUMicrosOp)
		m.Verified = m.Verified && r.Verified
		m.Violations = append(m.Violations, r.Violations...)
		m.Backlog += r.Backlog
		m.NotFound += r.NotFound
		m.Conflicts += r.Conflicts
		m.LatencySamples += r.LatencySamples
		if m.History != nil && m.History.Verdict == Linearizable {
			m.History = r.History // the worst
		}
	}
	m.Figures, m.ClientCPUMicrosOp = medianFigures(figures), median(client)
	m.MemoryMB = medianEach(runs, func(r *KVResult) []float64 { return r.MemoryMB })
	m.OwnMB = medianEach(runs, func(r *KVResult) []float64 { return r.OwnMB })
	m.Rounds, m.ThroughputSpread = len(runs), spread(figures)
	return &m
}

// WriteText writes the contest as a table.
func (c *KVContest) WriteText(w io.Writer) {
	r := c.Results[0]
	fmt.Fprintf(w, "%d members, %s, %.1f s, medians of %d rounds on %d cores, %s\n",
		r.Nodes, r.describeLoad(), r.DurationS, r.Rounds, r.Machine.Cores, r.Machine.Filesystem)
	var figures []Figures
	var spreads [][2]float64
	for _, r := range c.Results {
		figures, spreads = append(figures, r.Figures), append(spreads, r.ThroughputSpread)
	}
	writeTable(w, "requests/s", figures, spreads, &c.Comparison)
	for _, r := range c.Results {
		fmt.Fprintf(w, "%s: the client itself used %s µs of CPU per request\n", r.Protocol, number(r.ClientCPUMicrosOp))
		if len(r.OwnMB) > 0 {
			writeMemory(w, r.Protocol, r.MemoryMB)
			fmt.Fprintf(w, "%s: the largest without pages of files: %s MiB\n", r.Protocol,
				measured(slices.Max(r.OwnMB)))
		}
		if r.History != nil {
			fmt.Fprintf(w, "%s: %s\n", r.Protocol, r.History)
		}
	}
}

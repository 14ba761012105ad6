package sim

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/protocol/setting"
)

// Campaign is many runs.
type Campaign struct {
	Protocol  string
	Nodes     int
	Placement string         // "": the protocol's own
	Order     string         // how instances are merged into one log; "": the protocol's own
	Instances int            // the number; 0: the default
	Net       string         // the latencies between members; "": drawn from the seeds
	Own       setting.Values // of the protocol
	Mutant    string
	Without   []string
	// First … Last are the seeds, both included.
	First, Last uint64
	// Duration, if > 0, ends the campaign early: no run begins after it.
	Duration time.Duration
	// Workers is the number of concurrent runs; 0: one for each CPU.
	Workers int
	// Failures is the number of violations after which the campaign ends; 0: the first.
	Failures int
	// Progress, if set, is called periodically, from one goroutine at a time.
	Progress func(Summary)
}

// Summary is the outcome of a campaign.
type Summary struct {
	Protocol  string         `json:"protocol"`
	Nodes     int            `json:"nodes"`
	Placement string         `json:"placement,omitempty"`
	Order     string         `json:"order,omitempty"`
	Instances int            `json:"instances,omitempty"`
	Net       string         `json:"net,omitempty"`
	Own       setting.Values `json:"settings,omitzero"` // of the protocol
	Mutant    string         `json:"mutant,omitempty"`
	Runs      int            `json:"runs"`
	// Wanted is the number of requested runs.
	Wanted     uint64        `json:"wanted"`
	Steps      int           `json:"steps"`
	Messages   int           `json:"messages"`
	Operations int           `json:"operations"`
	Acked      int           `json:"acknowledged_writes"`
	Virtual    time.Duration `json:"virtual_ns"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	Events     count.Counts  `json:"events"`
	RunsPerS   float64       `json:"runs_per_s"`
	Failed     []Failure     `json:"failed"`
	// Hash is equal for equal runs of the same seeds, in whatever order they end. A change that only moves code does
	// not change it.
	Hash uint64 `json:"hash,string"`
}

// Described is a name that a flag takes, and its meaning.
type Described struct{ Name, Does string }

// FaultKinds lists the kinds of faults.
func FaultKinds() (all []Described) {
	all = append(all, Described{linkFaults, "messages are lost, duplicated, reordered and damaged, and streams break"})
	for _, f := range fault.Faults {
		all = append(all, Described{f.Name, f.Does})
	}
	return all
}

// Failure is a run with a violation.
type Failure struct {
	Seed   uint64 `json:"seed"`
	Error  string `json:"error"`
	Replay string `json:"replay"`
}

// Validate reports the first invalid option of a campaign.
func (c *Campaign) Validate() error {
	p, err := fault.ProtocolOf(c.Protocol)
	if err != nil {
		return err
	}
	if c.Nodes < 1 || c.Nodes > 9 {
		return &fault.OptionError{Detail: fmt.Sprintf("%d nodes: want 1 … 9", c.Nodes)}
	}
	if _, err := fault.PlacementOf(p, c.Placement); err != nil {
		return err
	}
	if err := fault.CheckNodes(p, c.Nodes); err != nil {
		return err
	}
	if _, err := fault.InstancesOf(p, c.Order, c.Instances); err != nil {
		return err
	}
	if _, err := fault.QuorumsOf(p, c.Own, c.Nodes); err != nil {
		return err
	}
	if _, err := device.ParseNet(c.Net); err != nil {
		return &fault.OptionError{Detail: err.Error()}
	}
	if c.First > c.Last {
		return &fault.OptionError{Detail: fmt.Sprintf("seeds %d-%d: the first is after the last", c.First, c.Last)}
	}
	if c.Mutant != "" && !slices.Contains(Mutants(), c.Mutant) {
		return &fault.OptionError{Detail: fmt.Sprintf("mutant %q is not known; there are: %v", c.Mutant, Mutants())}
	}
	for _, f := range c.Without {
		if f != linkFaults && !slices.Contains(fault.Names(), f) {
			return &fault.OptionError{Detail: fmt.Sprintf("fault %q is not known; there are: %v and %s",
				f, fault.Names(), linkFaults)}
		}
	}
	return nil
}

// Options returns the options for one seed of the campaign.
func (c *Campaign) Options(seed uint64) fault.Options {
	return fault.Options{Seed: seed, Nodes: c.Nodes, Protocol: c.Protocol, Placement: c.Placement, Order: c.Order,
		Instances: c.Instances, Net: c.Net, Own: c.Own, Mutant: c.Mutant, Without: c.Without}
}

// Replay returns the command that runs one seed again and prints its trace.
func (c *Campaign) Replay(seed uint64) string {
	text := fmt.Sprintf("braid sim --protocol %s --nodes %d --seeds %d-%d --trace", c.Protocol, c.Nodes, seed, seed)
	if c.Placement != "" {
		text += " --placement " + c.Placement
	}
	if c.Order != "" {
		text += " --order " + c.Order
	}
	if c.Instances != 0 {
		text += fmt.Sprintf(" --instances %d", c.Instances)
	}
	if c.Net != "" {
		text += " --net '" + c.Net + "'"
	}
	for _, arg := range registry.Settings().Args(c.Own) {
		text += " " + arg
	}
	if c.Mutant != "" {
		text += " --mutant " + c.Mutant
	}
	for _, f := range c.Without {
		text += " --without " + f
	}
	return text
}

// Run runs the campaign. Stop ends it early when closed; it may be nil.
func (c *Campaign) Run(stop <-chan struct{}) (Summary, error) {
	if err := c.Validate(); err != nil {
		return Summary{}, err
	}
	r := &campaignRun{c: c, began: time.Now()}
	r.sum = Summary{Protocol: c.Protocol, Placement: c.Placement, Order: c.Order, Instances: c.Instances, Nodes: c.Nodes, Net: c.Net, Own: c.Own, Mutant: c.Mutant, Wanted: c.Last - c.First + 1, Failed: []Failure{}}
	r.next.Store(c.First)
	workers := c.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			r.work(stop)
		}()
	}
	all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.measure()
	return r.sum, nil
}

type campaignRun struct {
	c     *Campaign
	began time.Time
	next  atomic.Uint64
	over  atomic.Bool
	// last is the seed with which the campaign ended. Results of later ones are ignored.
	last atomic.Uint64

	mu    sync.Mutex
	sum   Summary
	shown time.Time
}

func (r *campaignRun) work(stop <-chan struct{}) {
	for !r.over.Load() {
		select {
		case <-stop:
			return
		default:
		}
		seed := r.next.Add(1) - 1
		if seed > r.c.Last || r.c.Duration > 0 && time.Since(r.began) > r.c.Duration {
			return
		}
		o := r.c.Options(seed)
		o.Pointless = func() bool { return r.over.Load() && seed > r.last.Load() }
		if res := Run(o); !res.abandoned {
			r.add(res)
		}
	}
}

func (r *campaignRun) add(res Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.sum
	s.Runs++
	s.Steps += res.Steps
	s.Messages += res.Messages
	s.Operations += res.Operations
	s.Acked += res.Acked
	s.Virtual += res.Virtual
	s.Events.Merge(&res.Events)
	s.Hash += res.Hash * (2*res.Seed + 1)
	if res.Violation != nil {
		s.Failed = append(s.Failed, Failure{Seed: res.Seed, Error: res.Violation.Error(), Replay: r.c.Replay(res.Seed)})
		if len(s.Failed) >= max(1, r.c.Failures) {
			r.last.Store(res.Seed)
			r.over.Store(true)
		}
	}
	if r.c.Progress != nil && time.Since(r.shown) > 200*time.Millisecond {
		r.shown = time.Now()
		r.measure()
		r.c.Progress(*s)
	}
}

func (r *campaignRun) measure() {
	r.sum.Elapsed = time.Since(r.began)
	r.sum.RunsPerS = float64(r.sum.Runs) / r.sum.Elapsed.Seconds()
}

// Shrink turns off kinds of faults one by one as long as the seed still fails. It returns the remaining options,
// together with the failing run.
func Shrink(o fault.Options) (fault.Options, Result) {
	o.Trace = nil
	res := Run(o)
	if res.Violation == nil {
		return o, res
	}
	for _, f := range append([]string{linkFaults}, fault.Names()...) {
		if slices.Contains(o.Without, f) {
			continue
		}
		less := o
		less.Without = append(append([]string(nil), o.Without...), f)
		if r := Run(less); r.Violation != nil {
			o, res = less, r
		}
	}
	return o, res
}

package paper

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/braidlog/braid/internal/sim/scale"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol/common"
)

// Model computes the figures of clusters that cannot be run here.
type Model struct {
	// Calibrate measures the cost of each piece of the work on this machine.
	Calibrate func(ctx context.Context, dir string, runs []scale.Config) (scale.Costs, error)
	// Fit corrects costs by measurements of clusters here.
	Fit func(scale.Costs, []scale.Measurement) (scale.Costs, error)
	Run func(scale.Config) (*scale.Result, error)
}

var scaleModel = Model{scale.Calibrate, scale.Fit, scale.Run}

const (
	// fitTime is the run time of clusters for the fit, in their own time.
	fitTime = 40 * time.Millisecond
	// modelReserve is the part of a limited time that is kept for computing.
	modelReserve = 12 * time.Second
)

// split separates cases to measure from those to compute.
func (r *runner) split(cases []Case) {
	for i := range cases {
		if cases[i].Setup.Model {
			r.computed = append(r.computed, cases[i])
		} else {
			r.cases = append(r.cases, cases[i])
		}
	}
}

// reserved is the time that rounds must leave.
func (r *runner) reserved() time.Duration {
	if len(r.computed) == 0 {
		return 0
	}
	return modelReserve
}

// calibrate measures costs if there is anything to compute.
func (r *runner) calibrate(ctx context.Context) (costs scale.Costs, err error) {
	if len(r.computed) == 0 {
		return costs, nil
	}
	r.report("calibrating the model")
	var runs []scale.Config
	for i := range r.computed {
		c := &r.computed[i]
		runs = append(runs, c.Setup.scale(&c.Work, c.Work.For, costs))
	}
	if costs, err = r.Model.Calibrate(ctx, r.Dir, runs); err != nil {
		return costs, fmt.Errorf("%s: calibrating the model: %w", r.e.Name, err)
	}
	return costs, nil
}

// compute fits the model to the measurements and computes the other cases, on all cores.
func (r *runner) compute(ctx context.Context, costs scale.Costs) error {
	if len(r.computed) == 0 {
		return nil
	}
	r.report("fitting the model")
	if points := r.fitted(); len(points) > 0 {
		fit, err := r.Model.Fit(costs, points)
		if err != nil {
			return fmt.Errorf("%s: fitting the model: %w", r.e.Name, err)
		}
		costs = fit
	}
	r.result.Costs = &costs
	var workers sync.WaitGroup
	next := make(chan *Case)
	for range runtime.NumCPU() {
		workers.Go(func() {
			for c := range next {
				r.computeOne(c, costs)
			}
		})
	}
	for i := range r.computed {
		if ctx.Err() == nil {
			next <- &r.computed[i]
		}
	}
	close(next)
	workers.Wait()
	return ctx.Err()
}

func (r *runner) computeOne(c *Case, costs scale.Costs) {
	res, err := r.Model.Run(c.Setup.scale(&c.Work, c.Work.For, costs))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.result.note(fmt.Sprintf("%s, %s %g: not computed: %v", c.Series, cmp.Or(c.Part, r.e.XName), c.X, err))
		return
	}
	s := Sample{Throughput: res.Throughput, P50: ms(res.P50), P90: ms(res.P90), P99: ms(res.P99)}
	if x := res.Throughput; x > 0 {
		s[Egress], s[EgressAll], s[Messages], s[SyncsAll] = res.Egress/x, res.Bytes/x, res.Messages/x, res.Fsyncs/x
		s.addCPU(res.CPU, 1)
	}
	if away := c.Setup.latency(); away > 0 {
		s[RoundTrips] = float64(res.P50) / float64(2*away)
	}
	r.result.add(c, s)
	r.done++
	r.report(c.Series)
}

// fitted are the points to which the model is fitted, if they were measured.
func (r *runner) fitted() (points []scale.Measurement) {
	for _, w := range r.e.Fit {
		p := r.result.at(w)
		for i := range r.cases {
			c := &r.cases[i]
			if p == nil || c.Series != w.series || c.X != w.x || cmp.Or(c.Part, r.e.XName) != cmp.Or(w.part, r.e.XName) ||
				len(p.Runs[CPU]) == 0 {
				continue
			}
			last := fitTime
			if c.Work.At == AtMembers {
				last = c.Work.For // the clients' loops take longer to settle, and the run ends when they have
			}
			points = append(points, scale.Measurement{
				Name: w.series, Config: c.Setup.scale(&c.Work, last, scale.Costs{}), Throughput: median(p.Runs[Throughput]),
				CPU: time.Duration(median(p.Runs[CPU]) * float64(time.Microsecond)),
			})
		}
	}
	return points
}

// scale is the model's configuration: work for some time after a warm-up of the same length.
func (s *Setup) scale(w *Work, last time.Duration, costs scale.Costs) scale.Config {
	shape := s.shape()
	c := scale.Config{
		Protocol: shape.Protocol, Nodes: cmp.Or(s.Members, 3), Instances: max(1, common.Instances.In(s.Values), s.groups()),
		Spread:     shape.Spread(),
		Everywhere: w.At == AtMembers, Cores: s.Cores, Payload: cmp.Or(w.Payload, defaultPayload),
		MaxBatchCommands: s.BatchCommands, NoBatching: s.NoBatching, Depth: s.Depth, Own: common.Settings.Except(s.Values),
		Keys: w.KeySpace, Conflicts: w.Hot, Latency: s.latency(),
		Rate: w.Rate, Inflight: cmp.Or(w.Inflight, flowInflight), Warmup: last, Duration: last, Seed: 1, Costs: costs,
	}
	if s.Cores == 0 {
		c.Shared, c.Cores = true, runtime.NumCPU()
	}
	if w.Rate >= saturating {
		c.Rate = 0 // the limit of commands in progress is the only one
		if c.Everywhere {
			c.Commands = int64(c.Inflight)
			if c.Nodes <= manyMembers {
				c.Commands *= modelTurns
			}
		}
	}
	return c
}

const (
	// modelTurns is the number of times that the commands in progress are replaced before the measurement begins, and
	// during it. It is 1 with more than manyMembers members, because each of them handles every command.
	modelTurns  = 2
	manyMembers = 16
)

// latency is the one-way latency of the links, if they are emulated. It is the same for all of them in the model.
func (s *Setup) latency() time.Duration {
	net, err := netspec.Parse(s.Net)
	if err != nil {
		panic(err) // the settings of experiments are ours
	}
	return net.Link("", "").Latency
}

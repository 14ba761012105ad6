package paper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/braidlog/braid/bench"
)

// Config configures the runs of experiments.
type Config struct {
	// Dir is where clusters keep their files; they are removed afterwards.
	Dir string
	// Quick has fewer cases and rounds, and a time limit.
	Quick bool
	// Rounds is the number of runs of each case; 0: the experiment's.
	Rounds int
	// Command is the command line in the report.
	Command string
	// Progress is called before every run; nil: never.
	Progress func(Progress)
	// Member is the command that runs [ServeMember], for members in separate processes.
	Member []string
	// Open starts clusters; nil: the function Open.
	Open Opener
	// Model computes unmeasurable cases; zero: package scale.
	Model Model
	// Limit bounds the time of an experiment; 0: quickLimit if Quick, else no limit.
	Limit time.Duration
}

// Progress is the progress of an experiment.
type Progress struct {
	Experiment  string
	Doing       string // "starting", or the series and x of the run
	Done, Whole int    // runs
}

const (
	// quickLimit bounds a quick experiment with its start and its end.
	quickLimit = 52 * time.Second
	// fullRounds is the least number of rounds outside of quick mode.
	fullRounds = 3
	// startTogether is the number of clusters that start at once; most of that is waiting for election timeouts.
	startTogether = 12
	// attempts is the number of attempts of a disturbed run.
	attempts = 3
)

// Run runs an experiment. When ctx or the limit ends it early, the result covers the time until then; an error has no
// result only if there is none.
func Run(ctx context.Context, e *Experiment, c Config) (*Result, error) {
	if c.Open == nil {
		c.Open = Open(c.Member)
	}
	if c.Model.Run == nil {
		c.Model = scaleModel
	}
	if c.Limit == 0 && c.Quick && c.Rounds == 0 {
		c.Limit = cmp.Or(e.QuickLimit, quickLimit)
	}
	limited := ctx
	if c.Limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, c.Limit)
		defer cancel()
	}
	r := &runner{Config: c, e: e, targets: map[Setup]Target{}, began: time.Now()}
	r.split(e.cases(c.Quick))
	if e.Alone {
		r.cases = bySetup(r.cases)
	}
	r.result = newResult(e, e.cases(c.Quick), c)
	meter := bench.StartCPUMeter()
	err := r.run(limited)
	if verr := r.check(ctx); verr != nil {
		r.result.note(violation + verr.Error())
		err = errors.Join(verr, err)
	}
	if cerr := r.close(); err == nil {
		err = cerr
	}
	r.result.Machine.CPUShares = meter.Shares() // includes ended processes of members
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		r.result.note("stopped early: " + why(ctx, c))
		if ctx.Err() == nil {
			err = nil // a quick run ends by its limit
		}
	}
	if r.done == 0 {
		return nil, cmp.Or(err, fmt.Errorf("%s: nothing was measured within %v", e.Name, c.Limit))
	}
	r.result.finish(r.complete)
	return r.result, err
}

func why(ctx context.Context, c Config) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	return fmt.Sprintf("the limit of %v was reached", c.Limit)
}

type runner struct {
	Config
	e        *Experiment
	cases    []Case // to measure
	computed []Case // by the model
	result   *Result
	began    time.Time
	done     int // runs
	complete int // rounds

	mu      sync.Mutex
	targets map[Setup]Target
}

func (r *runner) rounds() int {
	switch {
	case r.Rounds > 0:
		return r.Rounds
	case r.Quick, r.e.Long:
		return max(1, r.e.QuickRounds)
	}
	return max(fullRounds, r.e.Rounds)
}

// run starts the clusters and runs the rounds. Each round begins with another case, so that changes on the machine
// affect all cases equally.
func (r *runner) run(ctx context.Context) error {
	r.report("starting")
	if err := checkSpace(r.Dir, r.cases, r.rounds()); err != nil {
		return err
	}
	if !r.e.Alone {
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	costs, err := r.calibrate(ctx)
	if err != nil {
		return err
	}
	if err := r.measure(ctx); err != nil {
		return err
	}
	return r.compute(ctx, costs)
}

// measure runs the rounds.
func (r *runner) measure(ctx context.Context) error {
	longest := time.Duration(0)
	for round := range r.rounds() {
		if r.Limit > 0 && round > 0 && time.Since(r.began)+longest+longest/4+r.reserved() > r.Limit {
			r.result.note(fmt.Sprintf("%d of %d rounds fitted into the time", round, r.rounds()))
			return nil
		}
		began := time.Now()
		if err := r.round(ctx, round); err != nil {
			return err
		}
		longest = max(longest, time.Since(began))
		r.complete++
	}
	return nil
}

// round runs every case as often as necessary, but never twice in a row while other cases remain: a short disturbance
// should affect many cases once.
func (r *runner) round(ctx context.Context, round int) error {
	for turn, more := 0, true; more; turn++ {
		more = false
		for i := range r.cases {
			c := &r.cases[(round+i)%len(r.cases)]
			if turn >= max(1, c.Times) {
				continue
			}
			if err := r.alone(ctx, c.Setup); err != nil {
				return err
			}
			if err := r.one(ctx, c); err != nil {
				return err
			}
			more = true
		}
	}
	return nil
}

// setups are those of all cases, each once.
func (r *runner) setups() (out []Setup) {
	for i := range r.cases {
		if !slices.Contains(out, r.cases[i].Setup) {
			out = append(out, r.cases[i].Setup)
		}
	}
	return out
}

// start opens the clusters of all cases, some at a time.
func (r *runner) start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, startTogether)
	var wg sync.WaitGroup
	var errs []error
	setups := r.setups()
	for _, setup := range setups {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() != nil {
				return
			}
			if err := r.open(ctx, setup); err != nil {
				r.mu.Lock()
				errs = append(errs, err)
				r.mu.Unlock()
				cancel()
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return errs[0]
	}
	return ctx.Err()
}

// bySetup returns the cases, those of a setup one after the other.
func bySetup(cases []Case) (out []Case) {
	r := runner{cases: cases}
	for _, s := range r.setups() {
		for i := range cases {
			if cases[i].Setup == s {
				out = append(out, cases[i])
			}
		}
	}
	return out
}

// alone makes the cluster of a setup the only one, if the experiment demands that.
func (r *runner) alone(ctx context.Context, s Setup) error {
	if !r.e.Alone || r.targets[s] != nil {
		return nil
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.close(); err != nil {
		return err
	}
	clear(r.targets)
	runtime.GC() // the last one's garbage must not slow this one
	return r.open(ctx, s)
}

func (r *runner) open(ctx context.Context, s Setup) error {
	dir, err := os.MkdirTemp(r.Dir, "cluster-")
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	t, err := r.Open(ctx, dir, s)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: starting a cluster: %w", r.e.Name, err), os.RemoveAll(dir))
	}
	r.mu.Lock()
	r.targets[s] = t
	r.mu.Unlock()
	return nil
}

// one runs a case once. A failed run, for example because the machine paused until the cluster elected another
// leader, is repeated on a new cluster.
func (r *runner) one(ctx context.Context, c *Case) error {
	what := fmt.Sprintf("%s, %s %g", c.Series, cmp.Or(c.Part, r.e.XName), c.X)
	r.report(what)
	for try := 1; ; try++ {
		sample, err := r.targets[c.Setup].Run(ctx, c.Work)
		if err == nil {
			r.result.add(c, sample)
			if n, ok := r.targets[c.Setup].(narrator); ok && c.Work.timeline() != "" {
				r.result.addMoments(c, n.Moments())
				r.result.addMarks(c, n.Marks())
			}
			r.done++
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if try == attempts {
			return fmt.Errorf("%s: %s: %w", r.e.Name, what, err)
		}
		r.result.note(fmt.Sprintf("%s: run again: %v", what, err))
		if err := errors.Join(r.targets[c.Setup].Close(), r.open(ctx, c.Setup)); err != nil {
			return err
		}
	}
}

func (r *runner) report(doing string) {
	if r.Progress != nil {
		whole := 0
		for i := range r.cases {
			whole += r.rounds() * max(1, r.cases[i].Times)
		}
		whole += len(r.computed)
		r.Progress(Progress{Experiment: r.e.Name, Doing: doing, Done: r.done, Whole: whole})
	}
}

// check verifies that the members of all clusters agree: otherwise no figure counts.
func (r *runner) check(ctx context.Context) error {
	for s, t := range r.targets {
		if err := t.Check(ctx); err != nil {
			return fmt.Errorf("%s: setup %+v: %w", r.e.Name, s, err)
		}
	}
	return nil
}

func (r *runner) close() error {
	var wg sync.WaitGroup
	var errs []error
	for _, t := range r.targets {
		wg.Go(func() {
			if err := t.Close(); err != nil {
				r.mu.Lock()
				errs = append(errs, err)
				r.mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// violation is the prefix of a note that members of a cluster did not agree.
const violation = "VIOLATION: "

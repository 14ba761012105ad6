package scale

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/protocol"
)

// protocols measures the steps of instances while simulations run them: for each protocol with a few members, with the most
// that any of the runs has, and with a number between.
func (c *Costs) protocols(ctx context.Context, runs []Config) error {
	for i := range runs {
		code := runs[i].code()
		if c.Steps[code] != nil {
			continue
		}
		for _, n := range sizes(runs, code) {
			cfg := runs[n]
			steps, err := c.measureSteps(&cfg)
			if err != nil {
				return fmt.Errorf("scale: costs of %s with %d members: %w", code, cfg.Nodes, err)
			}
			c.Steps[code] = append(c.Steps[code], *steps)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// sizes chooses runs of the same code with different numbers of members, ascending, at most three: the fewest, the most, and
// what is nearest to the middle, on a scale of factors.
func sizes(runs []Config, code string) (chosen []int) {
	var all []int
	for i := range runs {
		if runs[i].code() == code && !slices.ContainsFunc(all, func(o int) bool { return runs[o].Nodes == runs[i].Nodes }) {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b int) int { return runs[a].Nodes - runs[b].Nodes })
	if len(all) < 3 {
		return all
	}
	first, last := all[0], all[len(all)-1]
	middle := math.Log(float64(runs[first].Nodes)*float64(runs[last].Nodes)) / 2
	off := func(i int) float64 { return math.Abs(math.Log(float64(runs[i].Nodes)) - middle) }
	between := slices.MinFunc(all[1:len(all)-1], func(a, b int) int {
		if off(a) < off(b) {
			return -1
		}
		return 1
	})
	return []int{first, between, last}
}

// A simulation in which costs are measured ends after so many samples if as many commands have come through as are under way, a
// few times. It ends at the latest after so many samples, or after that much of its own time.
const (
	fewSamples = 20_000
	allSamples = 400_000
	meterTurns = 5
	meterTime  = 500 * time.Millisecond
	meterStep  = time.Millisecond
	// meterReal bounds the time that a simulation really takes.
	meterReal = 1500 * time.Millisecond
	// fewUnderWay are the commands under way where messages are to have one entry although more may wait.
	fewUnderWay = 48
)

// measureSteps measures the steps of a protocol under the load of a run: as many commands are under way, unless so many
// members have to do with each of them that it would take too long. Where messages have many entries, another simulation has
// few.
func (c *Costs) measureSteps(like *Config) (*Steps, error) {
	cfg := *like
	cfg.Rate, cfg.Commands, cfg.Warmup, cfg.Duration = 0, 0, time.Nanosecond, meterTime
	cfg.Inflight = max(like.Nodes, min(like.Inflight, allSamples/(4*meterTurns*like.Nodes)))
	m, err := c.metered(cfg)
	if err != nil {
		return nil, err
	}
	if !like.NoBatching {
		cfg.NoBatching, cfg.Depth, cfg.Inflight = true, 64, max(fewUnderWay, like.Nodes)
		few, err := c.metered(cfg)
		if err != nil {
			return nil, err
		}
		for kind := range m.samples {
			m.samples[kind] = append(m.samples[kind], few.samples[kind]...)
		}
	}
	line := func(kind meterKind) Cost { return fit(m.samples[kind]) }
	s := &Steps{
		Members: like.Nodes, Propose: line(meterPropose), Durable: line(meterDurable), Tick: line(meterTick), Wake: line(meterWake),
		Frame: line(meterFrame), Decode: line(meterDecode), Apply: line(meterApply),
	}
	rare := fit(slices.Concat(m.samples[meterMessages:]...))
	for kind := meterMessages; int(kind) < len(m.samples); kind++ {
		cost := rare // what is so rare that none came
		if len(m.samples[kind]) > 0 {
			cost = line(kind)
		}
		s.Messages = append(s.Messages, cost)
	}
	return s, nil
}

func (c *Costs) metered(cfg Config) (*meter, error) {
	cfg.Costs = *c
	cfg.Costs.Steps = map[string][]Steps{cfg.code(): {guess(&cfg)}}
	m := &meter{clock: typical(times, nil, func() {})}
	w, err := newWorld(cfg, m)
	if err != nil {
		return nil, err
	}
	m.samples = make([][]sample, int(meterMessages)+len(w.protocol.Core.Codec.Types))
	idle := w.members[0].loops[0]
	m.turn = typical(times, nil, func() { idle.hosted.Take(idle.look(&instance.Happened{})); idle.carryAll() }) - m.clock
	runtime.GC()
	w.start()
	enough := func() bool {
		return m.count >= fewSamples && w.came >= meterTurns*int64(cfg.Inflight) || m.count >= allSamples
	}
	for began := time.Now(); w.now < w.to && !enough() && time.Since(began) < meterReal; {
		w.run(w.now + meterStep)
	}
	return m, w.check()
}

// guess is roughly what the code of a run costs, while that is being measured.
func guess(of *Config) Steps {
	const µs = 1000
	s := Steps{Members: of.Nodes, Propose: Cost{Once: 3 * µs}, Durable: Cost{Once: 2 * µs}, Apply: Cost{Once: µs}}
	for range math.MaxUint8 - int(protocol.FirstOwnType) {
		s.Messages = append(s.Messages, Cost{Once: 2 * µs, Each: 200})
	}
	return s
}

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

// protocols measures the steps of instances while simulations run them: for each protocol with a few members, with
// the highest number in any run, and with a number between.
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

// sizes selects runs of the same code with different numbers of members, ascending, at most three: the fewest, the
// most, and the one nearest to their geometric mean.
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

// A simulation that measures costs ends after the lower number of samples if the completed commands are a few times
// those in flight. It ends at the latest after the higher number of samples, or after the given time of its own.
const (
	fewSamples = 20_000
	allSamples = 400_000
	meterTurns = 5
	meterTime  = 500 * time.Millisecond
	meterStep  = time.Millisecond
	// meterReal bounds the real time of a simulation.
	meterReal = 1500 * time.Millisecond
	// fewUnderWay is the number of commands in flight when messages should have one entry although they may have more.
	fewUnderWay = 48
)

// measureSteps measures the steps of a protocol under the load of a run: with the same number of commands in flight,
// unless each of them involves so many members that it would take too long. If messages have many entries, another
// simulation has few.
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
		cost := rare // a kind that is so rare that there was none
		if len(m.samples[kind]) > 0 {
			cost = line(kind)
		}
		s.Messages = append(s.Messages, cost)
	}
	return s, nil
}

func (c *Costs) metered(cfg Config) (*meter, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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

// guess returns rough costs of the code of a run, while they are being measured.
func guess(of *Config) Steps {
	const µs = 1000
	s := Steps{Members: of.Nodes, Propose: Cost{Once: 3 * µs}, Durable: Cost{Once: 2 * µs}, Apply: Cost{Once: µs}}
	for range math.MaxUint8 - int(protocol.FirstOwnType) {
		s.Messages = append(s.Messages, Cost{Once: 2 * µs, Each: 200})
	}
	return s
}

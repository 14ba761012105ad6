package scale

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
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

// Both simulations of a measurement end after so many samples if all commands have come through that were under way at the
// beginning, and at the latest after so many samples, or after that much of their own time.
const (
	fewSamples = 20_000
	allSamples = 300_000
	meterTime  = 100 * time.Millisecond
	meterStep  = time.Millisecond
	// fewUnderWay and allUnderWay are how many commands are under way in the two.
	fewUnderWay = 48
	allUnderWay = 1200
)

// measureSteps measures the steps of a protocol. In one simulation few commands are under way, and a message has one entry. In
// the other many are under way, and messages have many entries where the run has such messages.
func (c *Costs) measureSteps(like *Config) (*Steps, error) {
	cfg := Config{
		Protocol: like.Protocol, Nodes: like.Nodes, Instances: like.Instances, Relays: like.Relays, Quorums: like.Quorums,
		Everywhere: true, Cores: 4, Payload: small, Inflight: max(fewUnderWay, like.Nodes), NoBatching: true, Depth: 64, Warmup: time.Nanosecond, Duration: meterTime,
	}
	few, err := c.metered(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Inflight = max(cfg.Inflight, min(allUnderWay, allSamples/(8*like.Nodes)))
	if !like.NoBatching {
		cfg.NoBatching, cfg.MaxBatchCommands, cfg.Depth = false, 1, 0
	}
	all, err := c.metered(cfg)
	if err != nil {
		return nil, err
	}
	line := func(kind meterKind) Cost {
		if len(few.samples[kind]) == 0 {
			return fit(all.samples[kind], nil)
		}
		return fit(few.samples[kind], all.samples[kind])
	}
	s := &Steps{
		Members: like.Nodes, Propose: line(meterPropose), Durable: line(meterDurable), Tick: line(meterTick), Wake: line(meterWake),
		Frame: line(meterFrame), Decode: line(meterDecode), Apply: line(meterApply),
	}
	any := fit(slices.Concat(few.samples[meterMessages:]...), slices.Concat(all.samples[meterMessages:]...))
	for kind := meterMessages; int(kind) < len(few.samples); kind++ {
		cost := any // what is so rare that none came
		if len(few.samples[kind])+len(all.samples[kind]) > 0 {
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
	m.turn = typical(times, nil, func() { idle.hosted.Take(member.Happened{}); idle.hosted.Finish() }) - m.clock
	runtime.GC()
	w.start()
	for w.now < w.to && m.count < allSamples && (m.count < fewSamples || w.tally.commands < int64(cfg.Inflight)) {
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

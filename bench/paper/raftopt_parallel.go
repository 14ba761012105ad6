package paper

import "time"

const (
	parallelNone   = "neither"
	parallelAppend = "parallel append only"
	parallelApply  = "asynchronous apply only"
	parallelBoth   = "both"
)

// applyCost is the time to apply a command in the experiment on parallelism.
const applyCost = 200 * time.Microsecond

func raftParallel() *Experiment {
	e := &Experiment{
		Title: "Parallel append and asynchronous apply", Source: raftPaper + ", table 4 and graph 4",
		Text: []string{
			"Without either, the leader writes its log, then sends, and when a batch is committed it applies it before it " +
				"takes the next. With parallel append it sends while it writes; with asynchronous apply the next batch is " +
				"replicated while the state machine works.",
			"Applying must cost something for that to matter: here 0.2 ms for each command, about what a small synchronous " +
				"write takes here (the state machine sleeps, so that no CPU is used up that replication needs). Batches hold at " +
				"most 128 commands and one is under way at a time in all four settings, as jraft does it.",
			"What is compared is the time until all requests are replicated and committed. That is the nearest to the paper, " +
				"whose client is told that a request is accepted before it is committed or applied. braid answers when the " +
				"result is there, so its clients wait for the state machine in any case: the second picture. Replication hidden " +
				"behind applying can then shorten the run at most as far as the state machine's own time, 1 s at 5,000 requests. " +
				"What asynchronous apply buys is that commands are safe on a majority long before, and that neither heartbeats " +
				"nor elections wait for a slow state machine.",
			"Different from the paper: 61 ms a request without parallelism, growing with their number, come from its code: " +
				"one call commits one entry at most and writes a state file each time, so commits fall behind by thousands. Of " +
				"the 12 to 14 s of its parallel runs hardly anything depends on the number of requests. Compare " +
				"ratios, not shapes.",
		},
		XName: "requests", Rounds: 5, QuickRounds: 4,
		Table: []Metric{Replicated, Runtime, Throughput, P50, P99, PerEntry, Syncs, CPU},
	}
	for _, c := range []struct {
		series        string
		append, apply bool
	}{{parallelNone, false, false}, {parallelAppend, true, false}, {parallelApply, false, true},
		{parallelBoth, true, true}} {
		s := Setup{BatchCommands: 128, NoPipeline: true, NoParallelAppend: !c.append, NoAsyncApply: !c.apply,
			ApplyCost: applyCost}
		e.Cases = append(e.Cases, overRequests(c.series, s, 1)...)
		s.ApplyCost = 0
		e.Cases = append(e.Cases, closedLoops(c.series, s, 1, 8, 64, 512)...)
	}
	cases, places := tuned(Setup{ApplyCost: applyCost}, Work{Requests: 1000}, 1, []int{128, 0}, []int{1, 4, 16})
	e.Cases = append(e.Cases, cases...)
	paper := []Curve{
		{"paper: non-parallel", parallelNone, requestCounts, []float64{16192, 63170, 169984, 217972, 306233}},
		{"paper: parallel", parallelBoth, requestCounts, []float64{12374, 13915, 13117, 12933, 13859}},
	}
	e.Plots = []Plot{
		{
			Kind: Lines, Title: "Time until all requests are replicated", XLabel: "requests", Y: Replicated,
			LogY: true, Paper: paper,
			Caption: "Lower is better; the scale is logarithmic. Whiskers are the middle half of the runs.",
		},
		{
			Kind: Lines, Title: "Time until all requests are applied on all members", XLabel: "requests", Y: Runtime,
			Caption: "What braid's clients wait for: bounded below by the state machine, 0.2 ms a request.",
		},
		tradeoff("With a state machine that costs nothing, parallel append is what shows: a request no longer waits for " +
			"the leader's disk and then for the followers'."),
		tuningPlot(Runtime, "1,000 requests at once: the default against hand-tuned settings"),
	}
	e.Claims = []Claim{
		{
			Text: "parallelism shortens 5000 requests at least 10 times", Paper: 306.233 / 13.859, Unit: "×",
			Measure: times(Replicated, where{series: parallelNone, x: 5000}, where{series: parallelBoth, x: 5000}),
			Holds:   atLeast(10),
			Note: "Time until replicated with neither over that with both, at 5,000 requests. It grows with the " +
				"cost of applying.",
		},
		{
			Text:  "with more requests the runtime grows much faster without parallelism than with",
			Paper: (306.233 - 16.192) / (13.859 - 12.374), Unit: "×",
			Measure: growth(Replicated, parallelNone, parallelBoth, 1000, 5000), Holds: atLeast(5),
			Note: "What 4,000 more requests cost without, over what they cost with it; at least 5.",
		},
		{
			Text: "parallel append shortens the latency of a lone client", Unit: "×",
			Measure: times(P50, where{parallelApply, 1, clients}, where{parallelBoth, 1, clients}), Holds: func(v float64) bool {
				return v > 1
			},
			Note: "Not in the paper. Median latency with asynchronous apply only over that with both: one fsync and a trip " +
				"instead of two fsyncs and a trip.",
		},
		adaptiveWithin(Runtime, places, ""),
	}
	return e
}

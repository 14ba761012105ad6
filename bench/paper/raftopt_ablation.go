package paper

import "time"

// ablationSetup is basic Raft with some of the four optimisations.
func ablationSetup(batching, pipeline, parallel, async bool) Setup {
	return Setup{
		NoBatching: !batching, NoPipeline: !pipeline, NoParallelAppend: !parallel, NoAsyncApply: !async,
		Net: wire, ApplyCost: 20 * time.Microsecond,
	}
}

func raftAblation() *Experiment {
	const none, all = "none (basic Raft)", "all four (braid's default)"
	e := &Experiment{
		Title: "Each optimisation alone, and all but one", Source: raftPaper +
			"; the paper does not combine them",
		Text: []string{
			"The paper measures each idea by itself, and two of them in different programs. Here all four are switches of one " +
				"program, under one load: links of 0.75 ms each way, and a state machine that takes 0.02 ms a command.",
			"Alone says what an idea brings to basic Raft; all but one says what it still brings when the others are there. " +
				"The two differ: a pipeline helps much where there are no batches and little where there are, because a batch " +
				"takes along everything that waits.",
		},
		XName: "requests", Rounds: 5, QuickRounds: 4,
		Table: []Metric{Runtime, Throughput, P50, P99, PerEntry, Syncs, CPU},
	}
	for _, c := range []struct {
		series string
		setup  Setup
	}{
		{none, ablationSetup(false, false, false, false)},
		{"batching alone", ablationSetup(true, false, false, false)},
		{"pipeline alone", ablationSetup(false, true, false, false)},
		{"parallel append alone", ablationSetup(false, false, true, false)},
		{"asynchronous apply alone", ablationSetup(false, false, false, true)},
		{"all but batching", ablationSetup(false, true, true, true)},
		{"all but pipeline", ablationSetup(true, false, true, true)},
		{"all but parallel append", ablationSetup(true, true, false, true)},
		{"all but asynchronous apply", ablationSetup(true, true, true, false)},
		{all, ablationSetup(true, true, true, true)},
	} {
		e.Cases = append(e.Cases,
			Case{Series: c.series, X: 500, Setup: c.setup, Work: Work{Requests: 500}},
			Case{Series: c.series, Part: clients, X: 16, Setup: c.setup, Work: Work{Requests: 160, Clients: 16}})
	}
	e.Plots = []Plot{
		{Kind: Bars, Title: "500 requests at once: runtime", Y: Runtime, LogX: true, Accent: []string{none, all},
			Caption: "Shorter is better; the scale is logarithmic. Thin lines are the middle half of the runs."},
		{Kind: Bars, Title: "16 clients that wait for their answers: median latency", Part: clients, Y: P50,
			Accent: []string{none, all}, Caption: "Shorter is better."},
		{Kind: Bars, Title: "16 clients that wait for their answers: throughput", Part: clients, Y: Throughput,
			Accent: []string{none, all}, Caption: "Longer is better."},
	}
	at := func(series string) where { return where{series: series, x: 500} }
	e.Claims = []Claim{{
		Text: "all four together beat basic Raft", Unit: "×", Measure: times(Runtime, at(none), at(all)), Holds: atLeast(8),
		Note: "Runtime with none over runtime with all.",
	}}
	for _, name := range []string{"batching", "pipeline", "parallel append", "asynchronous apply"} {
		e.Claims = append(e.Claims, Claim{
			Text: "alone over basic Raft: " + name, Unit: "×", Measure: quietly(Runtime, at(none), at(name+" alone")),
			Holds: atLeast(0.95),
			Note:  "Runtime with none over runtime with this one (of lower quartiles of the runs); it holds if it does no harm.",
		})
	}
	return e
}

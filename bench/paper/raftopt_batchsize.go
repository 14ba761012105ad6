package paper

import (
	"slices"
	"time"
)

const (
	sizeAtOnce = "all at once"
	sizePaced  = "5,000 requests a second"
	sizeBeat   = "heartbeat, ms"
)

var batchSizes = []float64{64, 128, 256, 512, 1024}

func raftBatchSize() *Experiment {
	e := &Experiment{
		Title: "The size of batches", Source: raftPaper + ", table 3, graph 3 and section 6.4",
		Text: []string{
			"The paper expects larger batches to be faster, finds no pattern (0.95, 1.42, 0.88, 1.65 and 1.05 s), and " +
				"guesses: the heartbeat sends requests at random times, or the leader waits for a batch to fill until a time-out.",
			"What explains it is when requests arrive. If all are there at once, the limit decides how many batches there " +
				"are, and the runtime falls with it. If they arrive at 5,000 a second, which is about how fast the paper's " +
				"servers got them from their HTTP client (5,000 in a second, whatever the limit), a batch leaves with the few " +
				"that came during the last fsync; no limit is ever reached, all five settings do the same, and the " +
				"differences are noise.",
			"Where the noise comes from: a run is a chain of fsyncs, and their time varies. The scatter plot has a dot for " +
				"each run; runs with the same number of batches differ by what the disk took. The guesses are tried as well: " +
				"heartbeats from 20 to 300 ms change nothing, because entries do not wait for a heartbeat; and a lone request is " +
				"as fast with batches of 1,024 as of 64, because a batch leaves when the last one is done and never waits to be " +
				"full. (etcd's library, which the paper used, sends entries as soon as they are proposed, too.)",
		},
		XName: "batch size", Rounds: 7, QuickRounds: 4,
		Table: []Metric{Runtime, P50, P99, PerEntry, Syncs, SyncMean, MemberSync, CPU},
	}
	for _, b := range batchSizes {
		s := Setup{BatchCommands: int(b), NoPipeline: true}
		e.Cases = append(e.Cases,
			Case{Series: sizeAtOnce, X: b, Setup: s, Work: Work{Requests: paperRequests}, Times: 6},
			Case{Series: sizePaced, X: b, Setup: s, Work: Work{Requests: paperRequests, Rate: 5000}})
	}
	for _, b := range []float64{64, 1024} {
		e.Cases = append(e.Cases, closedLoops(sizeName(b), Setup{BatchCommands: int(b), NoPipeline: true}, 1, 64, 512)...)
	}
	e.Cases = append(e.Cases, closedLoops(adaptive, Setup{}, 1, 64, 512)...)
	for _, beat := range []float64{20, 100, 300} {
		s := Setup{BatchCommands: 128, NoPipeline: true, Heartbeat: time.Duration(beat) * time.Millisecond}
		e.Cases = append(e.Cases, Case{Series: sizeAtOnce, Part: sizeBeat, X: beat, Setup: s,
			Work: Work{Requests: paperRequests}, Times: 6})
	}
	cases, places := tuned(Setup{}, Work{Requests: 800, Rate: 5000}, 3, []int{128, 1024}, []int{1, 2, 8})
	e.Cases = append(e.Cases, cases...)
	e.Plots = batchSizePlots()
	e.Claims = batchSizeClaims(places)
	return e
}

func sizeName(b float64) string { return "batches of " + number(b) }

func batchSizePlots() []Plot {
	return []Plot{
		{
			Kind: Lines, Title: "Runtime against the size of batches", XLabel: "commands at which a batch is full", Y: Runtime,
			LogX: true, LogY: true,
			Paper:   []Curve{{"paper", sizePaced, batchSizes, []float64{952.48, 1415.68, 878.61, 1654.49, 1052.94}}},
			Caption: "Lower is better; both scales are logarithmic. Whiskers are the middle half of the runs.",
		},
		{
			Kind: Lines, Title: "How many requests shared a batch", XLabel: "commands at which a batch is full", Y: PerEntry,
			LogX: true, LogY: true,
			Caption: "At 5,000 requests a second no batch comes near its limit: the five settings are one.",
		},
		{
			Kind: Scatter, Title: "Each run: what the disk took, and how long the run was", X: MemberSync, Y: Runtime,
			LogX: true, LogY: true, Series: []string{sizeAtOnce},
			Caption: "A dot is a run with all requests at once; both scales are logarithmic. Within a size the number of " +
				"fsyncs is the same: what differs is how long they took. Not in the paper.",
		},
		{
			Kind: Lines, Title: "The guess of section 6.4: heartbeats", Part: sizeBeat, XLabel: "heartbeat, ms", Y: Runtime,
			Caption: "5,000 requests at once in batches of 128. Entries do not wait for heartbeats.",
		},
		tradeoff("The limit matters only where more clients wait than fit into a batch.", sizeName(64), sizeName(1024),
			adaptive),
		tuningPlot(P50, "800 requests at 5,000 a second: the default's latency against hand-tuned settings"),
	}
}

func batchSizeClaims(places []where) []Claim {
	var paced, atOnce []where
	for _, b := range batchSizes {
		paced = append(paced, where{series: sizePaced, x: b})
		atOnce = append(atOnce, where{series: sizeAtOnce, x: b})
	}
	return slices.Concat([]Claim{
		{
			Text:  "the size of batches makes no regular difference to requests that arrive one after the other",
			Paper: 1654.49 / 878.61, Unit: "×",
			Measure: spreadOver(Runtime, paced...), Holds: atMost(1.1),
			Note: "The slowest over the fastest size at 5,000 requests a second (of lower quartiles of the runs). The paper's " +
				"figure is its noise.",
		},
		{
			Text: "generally the runtime is smaller with bigger batches (section 6.3): 64 against 1024", Paper: 952.48 / 1052.94,
			Unit:    "×",
			Measure: times(Runtime, atOnce[0], atOnce[len(atOnce)-1]), Holds: func(v float64) bool { return v > 1 },
			Note: "Runtime with 64 over runtime with 1,024, all requests at once. In the paper it came out the other way round.",
		},
		{
			Text: "what explains the noise: the time that fsyncs take (share of the variance)", Unit: "%",
			Measure: explained(Runtime, MemberSync, atOnce...), Holds: atLeast(50),
			Note: "Squared correlation of the members' time in fsyncs with the runtime, among runs with the same size of " +
				"batches; the mean of the five sizes.",
		},
		{
			Text: "what does not: the heartbeat (the first guess of section 6.4)", Unit: "×",
			Measure: quietly(Runtime, where{sizeAtOnce, 300, sizeBeat}, where{sizeAtOnce, 20, sizeBeat}), Holds: atMost(1.25),
			Note: "Runtime with heartbeats of 300 ms over the same with 20 ms (of lower quartiles of the runs). If requests " +
				"waited for heartbeats, it would be many times.",
		},
		{
			Text: "what does not: waiting for a batch to fill (the second guess of section 6.4)", Unit: "×",
			Measure: quietly(P50, where{sizeName(1024), 1, clients}, where{sizeName(64), 1, clients}), Holds: atMost(1.25),
			Note: "Median latency of a lone client with batches of 1,024, which it never fills, over the same with 64 (of " +
				"lower quartiles of the runs).",
		},
	}, []Claim{adaptiveWithin(P50, places, " Median latency, since the runtime is that of the arrivals.")})
}

package paper

import "fmt"

// The experiments of "Analysis of Optimization Ideas of Basic Raft Consensus Algorithm" (Wang, Bao, Liang, Zhang;
// Santa Clara University, 2017).
//
// The paper's setup: tables 1 to 3 on etcd's raftexample, three processes on a laptop, a client that sends key-value
// pairs over HTTP without waiting for consensus; a server prints how long it took until it had stored all of them,
// and the tables give the slowest of the three. Table 4 on jraft, with a client that waits until the leader has
// accepted a request, which is before it is committed or applied.

const raftPaper = "Analysis of Optimization Ideas of Basic Raft"

// paperRequests is the number of requests of tables 2 and 3.
const paperRequests = 5000

var requestCounts = []float64{1000, 2000, 3000, 4000, 5000}

// inQuick are the numbers of requests in a quick run.
func inQuick(n float64) bool { return n == 1000 || n == 3000 || n == 5000 }

// adaptive is the series of braid's defaults in all experiments.
const adaptive = "braid's default (adaptive)"

const adaptiveClaim = "braid's default takes at most 1.1 times as long as the best hand-tuned setting"

// overRequests returns a case for each number of requests.
func overRequests(series string, s Setup, repeat int) []Case {
	var cases []Case
	for _, n := range requestCounts {
		cases = append(cases, Case{Series: series, X: n, Setup: s, Work: Work{Requests: int(n)}, Times: repeat,
			Full: !inQuick(n)})
	}
	return cases
}

// tuned returns a case for each hand-tuned setting, in a separate part, and their points; the default is one of the
// cases and none of the points.
func tuned(base Setup, work Work, repeat int, batches, depths []int) (cases []Case, places []where) {
	add := func(series string, s Setup) {
		cases = append(cases, Case{Series: series, Part: tuning, X: 1, Setup: s, Work: work, Times: repeat})
	}
	add(adaptive, base)
	for _, batch := range batches {
		for _, depth := range depths {
			s := base
			s.BatchCommands, s.Depth = batch, depth
			name := fmt.Sprintf("batch ≤ %s, depth %d", number(float64(batch)), depth)
			if batch == 0 {
				name = fmt.Sprintf("batch unlimited, depth %d", depth)
			}
			add(name, s)
			places = append(places, where{name, 1, tuning})
		}
	}
	return cases, places
}

// tuning is the part that compares the default with hand-tuned settings, clients the part with clients that wait for
// answers.
const (
	tuning  = "tuning"
	clients = "clients"
)

// closedLoops returns a case for each number of clients.
func closedLoops(series string, s Setup, numbers ...int) []Case {
	var cases []Case
	for _, n := range numbers {
		cases = append(cases, Case{Series: series, Part: clients, X: float64(n), Setup: s,
			Work: Work{Requests: 150 + 5*n, Clients: n}, Times: 2})
	}
	return cases
}

// tradeoff is the plot of latency over throughput.
func tradeoff(caption string, series ...string) Plot {
	return Plot{
		Kind: Tradeoff, Title: "Latency beside throughput: clients that wait for their answers", Part: clients,
		X: Throughput, Y: P50, LogX: true, LogY: true, Series: series,
		Caption: caption + " Numbers beside the dots are clients. Right and down is better. Not in the paper.",
	}
}

const (
	withoutBatching = "without batching"
	withBatching    = "with batching (128)"
	pipelinedOnly   = "without batching, pipelined"
)

func raftBatching() *Experiment {
	e := &Experiment{
		Title: "Batching", Source: raftPaper + ", table 1 and graph 1",
		Text: []string{
			"The leader of basic Raft takes a request, writes it, sends it, waits for a majority, and only then takes the " +
				"next. With batching it takes all requests that wait, up to 128, as one entry: one fsync and one message for all " +
				"of them.",
			"All requests are handed to the leader at once. The runtime is from the first request until the slowest of three " +
				"members has applied the last one, as the paper's table gives the slowest of its three servers. Both contestants " +
				"have one batch under way at a time, so that batching is the only difference; a third has no batches but a " +
				"pipeline, and braid's default has both, and no limit.",
			"Different from the paper: its client sends over HTTP, and 5,000 requests took it about a second whatever the " +
				"limit of a batch (table 3; see the experiment on the size of batches), so that something other than the log " +
				"bounds its runs with batching. Here nothing does, so the gain is what batching does to the log " +
				"itself, and larger.",
		},
		XName: "requests", Rounds: 7, QuickRounds: 4,
		Table: []Metric{Runtime, Throughput, P50, P99, PerEntry, Syncs, CPU},
	}
	for _, c := range []struct {
		series string
		setup  Setup
		repeat int
	}{
		{withoutBatching, Setup{NoBatching: true, NoPipeline: true}, 1},
		{pipelinedOnly, Setup{NoBatching: true}, 1},
		{withBatching, Setup{BatchCommands: 128, NoPipeline: true}, 3},
		{adaptive, Setup{}, 3},
	} {
		e.Cases = append(e.Cases, overRequests(c.series, c.setup, c.repeat)...)
		e.Cases = append(e.Cases, closedLoops(c.series, c.setup, 1, 8, 64, 512)...)
	}
	cases, places := tuned(Setup{}, Work{Requests: paperRequests}, 5, []int{128, 1024, 0}, []int{1, 4, 16})
	e.Cases = append(e.Cases, cases...)
	e.Plots = []Plot{
		{
			Kind: Lines, Title: "Runtime against the number of requests", XLabel: "requests", Y: Runtime, LogY: true,
			Paper: []Curve{
				{"paper: without batching", withoutBatching, requestCounts,
					[]float64{1705.791, 3727.118, 5425.242, 7128.524, 9035.188}},
				{"paper: with batching (128)", withBatching, requestCounts, []float64{83.182, 214.785, 423.419, 741.838, 1131.435}},
			},
			Caption: "Lower is better; the scale is logarithmic. Whiskers are the middle half of the runs.",
		},
		tradeoff("With one client there is nothing to batch, and batching costs nothing; with many it raises throughput " +
			"and lowers latency alike."),
		tuningPlot(Runtime, "5,000 requests at once: the default against hand-tuned settings"),
	}
	slow, fast := where{series: withoutBatching, x: 5000}, where{series: withBatching, x: 5000}
	slow1, fast1 := where{series: withoutBatching, x: 1000}, where{series: withBatching, x: 1000}
	e.Claims = []Claim{
		{
			Text: "batching shortens 5000 requests at least 8 times", Paper: 9035.188 / 1131.435, Unit: "×",
			Measure: times(Runtime, slow, fast), Holds: atLeast(8),
			Note: "Runtime without batching over runtime with batches of 128, at 5,000 requests.",
		},
		{
			Text: "batching shortens 1000 requests at least 8 times", Paper: 1705.791 / 83.182, Unit: "×",
			Measure: times(Runtime, slow1, fast1), Holds: atLeast(8), Note: "The same at 1,000 requests.",
		},
		{
			Text:  "with more requests the runtime grows much faster without batching than with",
			Paper: (9035.188 - 1705.791) / (1131.435 - 83.182), Unit: "×",
			Measure: growth(Runtime, withoutBatching, withBatching, 1000, 5000), Holds: func(v float64) bool { return v > 1 },
			Note: "What 4,000 more requests cost without batching, over what they cost with it.",
		},
		adaptiveWithin(Runtime, places, ""),
	}
	return e
}

// adaptiveWithin claims that the default is as good as the best hand-tuned setting.
func adaptiveWithin(m Metric, places []where, note string) Claim {
	return Claim{
		Text: adaptiveClaim, Unit: "×", Measure: againstBest(m, where{adaptive, 1, tuning}, places...), Holds: atMost(1.1),
		Note: "Not in the paper; below 1 the default is faster. Half of the runs choose the best setting, the other " +
			"half compare." + note,
	}
}

func tuningPlot(m Metric, title string) Plot {
	return Plot{Kind: Bars, Title: title, Part: tuning, Y: m, Accent: []string{adaptive},
		Caption: "Shorter is better. The first needs no tuning. Thin lines are the middle half of the runs. " +
			"Not in the paper."}
}

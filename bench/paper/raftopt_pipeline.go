package paper

import "slices"

// wire is the link of the experiment on pipelining: with it, a message, the follower's
// fsync and the answer take about as long as in the paper, 1.8 ms.
const wire = "latency=0.75ms"

const (
	pipeline128    = "batches of 128"
	pipeline1024   = "batches of 1,024"
	pipelineSingle = "one request a message"
	pipelineLocal  = "batches of 128, bare loopback"
)

var depths = []float64{1, 2, 4, 8, 16, 32, 64}

func raftPipeline() *Experiment {
	e := &Experiment{
		Title: "Pipelining", Source: raftPaper + ", table 2 and graph 2",
		Text: []string{
			"With depth 1 the leader waits until a batch is committed before it sends the next. With depth 16 it sends 15 " +
				"more meanwhile, so that 16 batches share one wait.",
			"That matters as far as there is something to wait for. On bare loopback a round trip takes 0.03 ms; what a " +
				"pipeline gains there is that several batches share an fsync (the series without a link). So the links here are " +
				"emulated with 0.75 ms each way; message, fsync and answer then take about 1.8 ms, which is what one step of the " +
				"paper's table takes (9.02 s for 5,000 requests).",
			"Different from the paper: its two columns hardly differ, and both begin at 5,000 times 1.8 ms, the runtime that " +
				"table 1 gives without batching. So its batches held one request each, whatever their limit. The series with one " +
				"request a message shows that case (500 requests). The others have full batches, 40 of them: 5,000 requests in " +
				"batches of 128, 40,960 in batches of 1,024.",
		},
		XName: "depth", Rounds: 7, QuickRounds: 4,
		Table: []Metric{Runtime, Throughput, P50, P99, PerEntry, Syncs, CPU},
	}
	for _, d := range depths {
		depth := int(d)
		for _, c := range []struct {
			series string
			setup  Setup
			n      int
			repeat int
		}{
			{pipeline128, Setup{BatchCommands: 128, Depth: depth, Net: wire}, paperRequests, 3},
			{pipeline1024, Setup{BatchCommands: 1024, Depth: depth, Net: wire}, 40 * 1024, 3},
			{pipelineSingle, Setup{NoBatching: true, Depth: depth, Net: wire}, 500, 1},
			{pipelineLocal, Setup{BatchCommands: 128, Depth: depth}, paperRequests, 2},
		} {
			e.Cases = append(e.Cases, Case{Series: c.series, X: d, Setup: c.setup, Work: Work{Requests: c.n}, Times: c.repeat})
		}
	}
	for _, d := range []int{1, 4, 16} {
		e.Cases = append(e.Cases, closedLoops(depthName(d), Setup{BatchCommands: 128, Depth: d, Net: wire}, 1, 8, 64, 512)...)
	}
	e.Cases = append(e.Cases, closedLoops(adaptive, Setup{Net: wire}, 1, 8, 64, 512)...)
	cases, places := tuned(Setup{Net: wire}, Work{Requests: paperRequests}, 5, []int{128, 1024, 0}, []int{1, 4, 16, 64})
	e.Cases = append(e.Cases, cases...)
	e.Plots = pipelinePlots()
	e.Claims = pipelineClaims(places)
	return e
}

func depthName(d int) string { return "depth " + number(float64(d)) }

func pipelinePlots() []Plot {
	paper128 := []float64{9023.24, 8598.63, 4845.09, 2623.73, 1503.13, 1584.18, 1914.97}
	paper1024 := []float64{8718.64, 8546.75, 4753.21, 3482.94, 1798.49, 952.33, 1941.47}
	return []Plot{
		{
			Kind: Lines, Title: "Runtime against the depth of the pipeline", XLabel: "depth: batches under way at once",
			Y: Runtime, LogX: true, LogY: true,
			Paper: []Curve{
				{"paper: batches of 128", pipeline128, depths, paper128},
				{"paper: batches of 1,024", pipeline1024, depths, paper1024},
			},
			Caption: "Lower is better; both scales are logarithmic. The paper's curves are to be compared with the one of one " +
				"request a message, which has a tenth of its requests.",
		},
		tradeoff("A deeper pipeline helps as soon as more than one client waits; it costs a lone client nothing.",
			depthName(1), depthName(4), depthName(16), adaptive),
		tuningPlot(Runtime, "5,000 requests at once over this link: the default against hand-tuned settings"),
	}
}

func pipelineClaims(places []where) []Claim {
	claims := []Claim{}
	for _, c := range []struct {
		series, text string
		paper        float64
	}{
		{pipeline128, "a pipeline of 16 shortens the run at least 4 times (batches of 128)", 9.02324 / 1.50313},
		{pipeline1024, "a pipeline of 16 shortens the run at least 4 times (batches of 1024)", 8.71864 / 1.79849},
		{pipelineSingle, "a pipeline of 16 shortens the run at least 4 times (one request a message, as the paper's runs " +
			"in fact were)", 9.02324 / 1.50313},
	} {
		claims = append(claims, Claim{
			Text: c.text, Paper: c.paper, Unit: "×",
			Measure: times(Runtime, where{series: c.series, x: 1}, where{series: c.series, x: 16}), Holds: atLeast(4),
			Note: "Runtime at depth 1 over runtime at depth 16.",
		})
	}
	return slices.Concat(claims, []Claim{
		{
			Text: "beyond a depth of 16 there is no huge improvement (batches of 128, depth 16 to 64)", Paper: 1.50313 / 1.91497,
			Unit:    "×",
			Measure: times(Runtime, where{series: pipeline128, x: 16}, where{series: pipeline128, x: 64}), Holds: atMost(2),
			Note: "Runtime at depth 16 over runtime at depth 64: 40 batches are 3 waits at depth 16 and 1 at depth 64.",
		},
		adaptiveWithin(Runtime, places, ""),
	})
}

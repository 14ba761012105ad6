package paper

import "time"

var latencyRates = []float64{10e3, 50e3, 100e3, 200e3, 500e3, 1e6, 2e6}

func niagaraLatency() *Experiment {
	const at = 100e3
	e := &Experiment{
		Name: "niagara-latency", Title: "Latency at levels of throughput", Source: niagaraPaper + ", figure 4",
		Short: "The 90th percentile of latency at 10,000 to 2 million commands/s, and that of a lone client, for raft and niagara with 1 to 12 instances.",
		Text: []string{
			"Commands of 16 bytes at a rate; latency counts from when a command was due until the leader has applied it. A series ends where it does not keep up: from there on the latency is that of the 100,000 commands that wait.",
			"A second measurement is not in the paper: one client that waits for each of its commands, on a cluster that does nothing else. Its commands are batches of one instance, and the global log goes on only when the others have filled the same rounds. The paper's sequencer notices that periodically; here the others skip ahead before it matters, so that the lone command should not wait for them.",
			sharedText,
		},
		XName: "commands/s", Rounds: 5, QuickRounds: 3,
		Table: []Metric{P90, P50, P99, Throughput, CPU, Syncs},
	}
	var xs []float64
	for _, c := range niagaraContestants() {
		for _, rate := range latencyRates {
			e.Cases = append(e.Cases, Case{
				Series: c.series, X: rate, Setup: c.setup, Work: Work{Rate: rate, For: time.Second}, Full: !c.inQuick() || rate != at && rate != 1e6,
			})
		}
		alone := Case{
			Series: seriesNiagara, Part: lone, X: float64(c.instances), Setup: c.setup, Work: Work{Requests: 200, Clients: 1}, Times: 3, Full: !c.inQuick(),
		}
		if c.series == seriesRaft {
			alone.Series = seriesRaft
		} else {
			xs = append(xs, alone.X)
		}
		e.Cases = append(e.Cases, alone)
	}
	e.Plots = []Plot{
		{
			Kind: Lines, Title: "90th percentile of latency", XLabel: "commands/s", Y: P90, LogX: true, LogY: true,
			Paper:   []Curve{{"paper: raft, one core", seriesRaft, []float64{at}, []float64{35}}},
			Caption: "Lower is better; both scales are logarithmic. The paper's text gives one point: about 35 ms at 100,000/s.",
		},
		{
			Kind: Lines, Title: "One client on an idle cluster: median latency", Part: lone, XLabel: "instances", Y: P50,
			Caption: "Lower is better. Not in the paper.",
		},
	}
	e.Claims = []Claim{
		{
			Text: "a lone command on an idle cluster takes at most 1.2 times as long as with raft, with any number of instances", Unit: "×",
			Measure: most(P50, seriesNiagara, lone, xs, where{seriesRaft, 1, lone}), Holds: atMost(1.2),
			Note: "Not in the paper. Medians, at the number of instances where it is most.",
		},
		{
			Text: "at 100,000 commands/s the 90th percentile is less with several instances than with raft", Unit: "×",
			Measure: times(P90, where{series: niagaraSeries(4), x: at}, where{series: seriesRaft, x: at}), Holds: func(v float64) bool { return v < 1 },
			Note: "R = 4 over raft. The paper says: significantly lower, with a core for each instance; here the cores are shared.",
		},
		{
			Text: "fewer instances have a lower latency than more", Unit: "×",
			Measure: times(P90, where{series: niagaraSeries(4), x: at}, where{series: niagaraSeries(12), x: at}), Holds: func(v float64) bool { return v < 1 },
			Note: "R = 4 over R = 12, 90th percentile at 100,000 commands/s. The paper says so, because fewer logs are merged.",
		},
	}
	return e
}

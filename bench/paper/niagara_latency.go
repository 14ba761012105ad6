package paper

var (
	latencyRates      = []float64{5e3, 10e3, 20e3, 40e3, 80e3}
	modelLatencyRates = []float64{20e3, 50e3, 100e3, 200e3, 400e3}
)

func niagaraLatency() *Experiment {
	e := &Experiment{
		Title: "Latency at levels of throughput", Source: niagaraPaper + ", figure 4",
		Text: []string{
			"Commands of 16 bytes at a rate; latency counts from when a command was due until the leader has applied it. " +
				"Where a series does not keep up, its latency is that of the 10,000 commands that wait.",
			"A second measurement is not in the paper: one client that waits for each of its commands, on a cluster that does " +
				"nothing else. Its commands are batches of one instance, and the global log goes on only when the others have " +
				"filled the same rounds. The paper's sequencer notices that periodically; here the others skip ahead before it " +
				"matters, so that the lone command should not wait for them.",
			entriesText, modelText,
		},
		XName: "commands/s", Rounds: 3, QuickRounds: 2,
		Table: []Metric{P90, P50, P99, Throughput, CPU, Syncs},
		Fit:   []where{{seriesRaft, 1, byInstances}},
	}
	var xs []float64
	for _, c := range niagaraContestants(seriesRaft, seriesNiagara) {
		each := niagaraSetup(c.instances, entryEach)
		for _, rate := range latencyRates {
			e.Cases = append(e.Cases, Case{Series: c.name(), X: rate, Setup: each, Work: flowing(rate, entriesInflight),
				Full: !c.inQuick() || rate != 10e3 && rate != 40e3})
		}
		e.Cases = append(e.Cases, Case{
			Series: c.series, Part: lone, X: c.at(), Setup: niagaraSetup(c.instances, 0), Work: Work{Requests: 200, Clients: 1},
			Times: 3, Full: !c.inQuick(),
		})
		if c.instances > 0 {
			xs = append(xs, c.at())
		} else { // the points to which the model is fitted
			e.Cases = append(e.Cases, Case{Series: c.series, Part: byInstances, X: 1, Setup: each,
				Work: flowing(saturating, entriesInflight)})
		}
	}
	for _, c := range niagaraContestants(modelRaft, modelNiagara) {
		for _, rate := range modelLatencyRates {
			e.Cases = append(e.Cases, Case{
				Series: c.name(), Part: byModel, X: rate, Setup: niagaraSetup(c.instances, entryEach).modelled(max(1, c.instances)),
				Work: Work{Rate: rate, For: modelTime, Inflight: entriesInflight}, Full: !c.inQuick() ||
					rate != 100e3 && rate != 200e3,
			})
		}
	}
	e.Plots = []Plot{
		{
			Kind: Lines, Title: "90th percentile of latency, a core for each instance (model)", Part: byModel,
			XLabel: "commands/s", Y: P90, LogX: true, LogY: true,
			Paper:   []Curve{{"paper: raft, one core", modelRaft, []float64{100e3}, []float64{35}}},
			Caption: "Lower is better; both scales are logarithmic. The paper's text gives one point: about 35 ms at 100,000/s.",
		},
		{
			Kind: Lines, Title: "90th percentile of latency, measured on this machine", XLabel: "commands/s", Y: P90,
			LogX: true, LogY: true,
			Caption: "Lower is better; both scales are logarithmic. All members share the cores of this machine.",
		},
		{
			Kind: Lines, Title: "One client on an idle cluster: median latency", Part: lone, XLabel: "instances", Y: P50,
			Caption: "Lower is better; raft is the level line. Not in the paper.",
		},
	}
	e.Claims = latencyLevelClaims(xs)
	return e
}

// latencyLevelClaims has none about what is computed, because no latency is measured that it could be compared with.
func latencyLevelClaims(xs []float64) []Claim {
	return []Claim{{
		Text: "a lone command on an idle cluster takes at most 1.2 times as long as with raft, with any " +
			"number of instances",
		Unit:    "×",
		Measure: most(P50, seriesNiagara, lone, xs, where{seriesRaft, 1, lone}), Holds: atMost(1.2),
		Note: "Not in the paper. Measured: medians, at the number of instances where it is most.",
	}}
}

package paper

import "time"

// modelTime is the run time of a modelled cluster, in its own time, after a warm-up of the same length.
const modelTime = 60 * time.Millisecond

var requestedRates = []float64{10e3, 25e3, 50e3, 100e3, 200e3, 400e3}

func niagaraThroughput() *Experiment {
	e := &Experiment{
		Title: "Requested and provided throughput", Source: niagaraPaper + ", figure 3",
		Text: []string{
			"The load appends commands of 16 bytes at a rate, whether or not the cluster keeps up; what is due while 10,000 " +
				"are under way is dropped, as the paper's generator drops what Raft does not take. Provided is what the leader " +
				"applied. All instances are led by one member.",
			entriesText, modelText,
			"With batches as braid makes them there is no such limit to lift: one instance orders millions of commands a " +
				"second, and the load, the disk and applying limit it, which all instances share.",
		},
		XName: "commands/s requested", Rounds: 3, QuickRounds: 1,
		Table: []Metric{Throughput, P50, P90, P99, CPU, Egress},
		Fit:   []where{{seriesRaft, 1, byInstances}, {seriesRaft, 1, batched}},
	}
	e.Cases = append(requestedCases(), modelledCases()...)
	e.Plots = throughputPlots()
	e.Claims = throughputClaims()
	return e
}

// flowing is commands of 16 bytes at a rate; saturating is as many as possible.
func flowing(rate float64, inflight int) Work {
	return Work{Rate: rate, For: time.Second, Inflight: inflight}
}

// requestedCases are measured.
func requestedCases() (cases []Case) {
	for _, c := range niagaraContestants(seriesRaft, seriesNiagara) {
		each, free := niagaraSetup(c.instances, entryEach), niagaraSetup(c.instances, 0)
		for _, rate := range requestedRates {
			cases = append(cases, Case{
				Series: c.name(), X: rate, Setup: each, Work: flowing(rate, entriesInflight), Full: !c.inQuick() ||
					rate != 25e3 && rate != 200e3,
			})
		}
		cases = append(cases,
			Case{Series: c.series, Part: byInstances, X: c.at(), Setup: each, Work: flowing(saturating, entriesInflight),
				Full: !c.inQuick()},
			Case{Series: c.series, Part: batched, X: c.at(), Setup: free, Work: flowing(saturating, 0), Full: !c.inQuick() ||
				c.instances == 4})
	}
	for i := range cases {
		if x := cases[i].X; cases[i].Part != "" && x == 1 {
			cases[i].Times = 2 // these are compared to 3 %
		}
	}
	return cases
}

// modelledCases are computed: the measured ones, and more cores.
func modelledCases() (cases []Case) {
	work := func(rate float64, inflight int) Work {
		return Work{Rate: rate, For: modelTime, Inflight: inflight}
	}
	for _, c := range niagaraContestants(modelRaft, modelNiagara) {
		each, free := niagaraSetup(c.instances, entryEach), niagaraSetup(c.instances, 0)
		cases = append(cases,
			Case{Series: c.series, Part: byInstances, X: c.at(), Setup: each.modelled(0),
				Work: work(saturating, entriesInflight), Full: !c.inQuick()},
			Case{Series: c.series, Part: batched, X: c.at(), Setup: free.modelled(0), Work: work(saturating, 0), Full: true})
		for _, cores := range instanceCounts {
			if c.instances != 0 && c.instances != cores {
				continue
			}
			x := float64(cores)
			cases = append(cases,
				Case{Series: c.series, Part: byCores, X: x, Setup: each.modelled(cores), Work: work(saturating, entriesInflight),
					Full: cores != 1 && cores != 8},
				Case{Series: c.series + ", batches", Part: byCores, X: x, Setup: free.modelled(cores), Work: work(saturating, 0),
					Full: true})
		}
		for _, rate := range []float64{50e3, 100e3, 200e3, 400e3, 800e3} {
			cases = append(cases, Case{
				Series: c.name(), Part: byModel, X: rate, Setup: each.modelled(max(1, c.instances)),
				Work: work(rate, entriesInflight), Full: !c.inQuick() || rate != 100e3 && rate != 400e3,
			})
		}
	}
	return cases
}

func throughputPlots() []Plot {
	return []Plot{
		{
			Kind: Lines, Title: "The most that is provided, by the number of cores (model)", Part: byCores,
			XLabel: "cores of each member; niagara has as many instances", Y: Throughput, LogY: true,
			Paper: []Curve{
				{"paper: niagara", modelNiagara, []float64{1, 12}, []float64{120e3, 600e3}},
				{"paper: raft, one core", modelRaft, []float64{1}, []float64{120e3}},
			},
			Caption: "Higher is better; the scale is logarithmic. Computed with the costs of this machine. The paper's raft " +
				"is slower with more cores than with one; its text does not say how much.",
		},
		{
			Kind: Lines, Title: "Requested and provided throughput, measured on this machine", XLabel: "commands/s requested",
			Y: Throughput, LogX: true, LogY: true,
			Paper: []Curve{{"paper: raft, one core", seriesRaft, []float64{60e3, 120e3, 240e3},
				[]float64{60e3, 120e3, 120e3}}},
			Caption: "Higher is better, the diagonal is best; both scales are logarithmic. All members share the cores of " +
				"this machine. Of the paper's curve the text tells where it leaves the diagonal.",
		},
		{
			Kind: Lines, Title: "Requested and provided throughput, a core for each instance (model)", Part: byModel,
			XLabel: "commands/s requested", Y: Throughput, LogX: true, LogY: true,
			Caption: "Higher is better, the diagonal is best; both scales are logarithmic.",
		},
		{
			Kind: Lines, Title: "The model beside what is measured: the most that is provided", Part: byInstances,
			XLabel: "instances", Y: Throughput,
			Caption: "All members and the load share the cores of this machine, in the model too. Raft is the level line.",
		},
		{
			Kind: Lines, Title: "The same with batches as braid makes them", Part: batched, XLabel: "instances", Y: Throughput,
			Caption: "Higher is better. All members and the load share the cores of this machine. Not in the paper.",
		},
	}
}

func throughputClaims() []Claim {
	var xs []float64
	for _, r := range instanceCounts {
		xs = append(xs, float64(r))
	}
	core := func(series string, x float64) where { return where{series, x, byCores} }
	alone := func(part string) measure {
		return times(Throughput, where{seriesNiagara, 1, part}, where{seriesRaft, 1, part})
	}
	return []Claim{
		{
			Text:  "with 8 cores and as many instances niagara provides at least 6 times as much as raft with 8 cores (model)",
			Paper: 5, Unit: "×",
			Measure: times(Throughput, core(modelNiagara, 8), core(modelRaft, 8)), Holds: atLeast(6),
			Off:  modelOff(byInstances, xs, seriesNiagara),
			Note: "Computed, not measured. The paper's factor is niagara's most, with 12 instances, over raft's, with one core.",
		},
		{
			Text: "with 8 cores raft provides at most 1.5 times what it does with one (model)", Unit: "×",
			Measure: times(Throughput, core(modelRaft, 8), core(modelRaft, 1)), Holds: atMost(1.5),
			Off: modelOff(byInstances, xs[:1], seriesRaft),
			Note: "What runs beside the one loop, disk, links and applying, has cores of its own then. The paper says that " +
				"more cores make raft slower, as they get into each other's way, which is not modelled.",
		},
		{
			Text: "the model says what is measured", Unit: "×",
			Measure: modelOff(byInstances, xs, seriesNiagara), Holds: atMost(mostOff),
			Note: "By how much the model is off for niagara, up or down, in throughput or in a command's CPU time, with " +
				"the number of instances where it is most; it was fitted to raft. Where this does not hold, what is " +
				"computed of niagara has no verdict.",
		},
		{
			Text: "with one instance niagara is as fast as raft", Paper: 1, Unit: "×",
			Measure: least(alone(byInstances), alone(batched)), Holds: atLeast(0.97),
			Note: "Measured: the most that niagara with R = 1 provides over the most that raft does, with an entry for each " +
				"command or with batches, whichever is less. 3 % less counts as the same; the paper says similar.",
		},
	}
}

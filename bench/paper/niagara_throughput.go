package paper

import "time"

// saturating is a rate that nothing keeps up with.
const saturating = 20e6

var requestedRates = []float64{250e3, 500e3, 1e6, 2e6, 3e6, 4e6, 6e6}

func niagaraThroughput() *Experiment {
	e := &Experiment{
		Name: "niagara-throughput", Title: "Requested and provided throughput", Source: niagaraPaper + ", figure 3",
		Short: "Commands of 16 bytes at rising rates to raft and to niagara with 1 to 12 instances: how many come through.",
		Text: []string{
			"The load appends commands of 16 bytes at a rate, whether or not the cluster keeps up; what is due while 100,000 are under way is dropped, as the paper's generator drops what Raft does not take. Provided is what the leader applied. All instances are led by one member.",
			sharedText,
		},
		XName: "commands/s requested", Rounds: 5, QuickRounds: 3,
		Table: []Metric{Throughput, P50, P90, P99, CPU, Egress},
	}
	work := func(rate float64) Work { return Work{Rate: rate, For: time.Second} }
	for _, c := range niagaraContestants() {
		for _, rate := range requestedRates {
			e.Cases = append(e.Cases, Case{
				Series: c.series, X: rate, Setup: c.setup, Work: work(rate), Full: !c.inQuick() || rate != 1e6 && rate != 3e6,
			})
		}
		most := Case{Series: seriesNiagara, Part: byInstances, X: float64(c.instances), Setup: c.setup, Work: work(saturating), Times: 2, Full: !c.inQuick()}
		if c.series == seriesRaft {
			most.Series = seriesRaft
		}
		e.Cases = append(e.Cases, most)
	}
	e.Plots = []Plot{
		{
			Kind: Lines, Title: "Requested and provided throughput", XLabel: "commands/s requested", Y: Throughput, LogX: true, LogY: true,
			Paper: []Curve{
				{"paper: raft, one core", seriesRaft, []float64{60e3, 120e3, 240e3}, []float64{60e3, 120e3, 120e3}},
				{"paper: niagara, R = 12", niagaraSeries(12), []float64{300e3, 600e3}, []float64{300e3, 600e3}},
			},
			Caption: "Higher is better, the diagonal is best; both scales are logarithmic. Of the paper's curves the text tells where they end.",
		},
		{
			Kind: Lines, Title: "The most that is provided, by the number of instances", Part: byInstances, XLabel: "instances", Y: Throughput, LogY: true,
			Paper:   []Curve{{"paper: niagara (12 cores)", seriesNiagara, []float64{1, 12}, []float64{120e3, 600e3}}},
			Caption: "Higher is better; the scale is logarithmic. The paper gave each instance a core of its own.",
		},
	}
	at := func(series string, x float64) where { return where{series, x, byInstances} }
	e.Claims = []Claim{{
		Text: "with one instance niagara is as fast as raft", Paper: 1, Unit: "×",
		Measure: times(Throughput, at(seriesNiagara, 1), at(seriesRaft, 1)), Holds: atLeast(0.97),
		Note: "The most that niagara with R = 1 provides over the most that raft does. At most 3 % less counts as the same; the paper says similar.",
	}}
	return e
}

package paper

import "time"

const healthy = "healthy members of 7"

func craftLiveness() *Experiment {
	e := &Experiment{
		Title: "When members fail", Source: craftPaper + ", figure 13",
		Text: []string{
			"Followers are stopped, clients write values of 32 KiB for a time, and the followers come back. RS-Raft needs " +
				"five members for everything it commits and has no other way: with four it does nothing, which shows as 0. Craft " +
				"sees who answers and turns to fewer fragments, and at last to whole copies.",
			"Different from the paper: its craft with five members can only send whole copies, because k is fixed at 3 and " +
				"would need six. Here k goes down with the members, so that with five it still codes with k = 2.",
			setupText,
		},
		XName: healthy, Rounds: 3, QuickRounds: 1,
		Table: []Metric{Bandwidth, Throughput, P50, P99, Egress, CPU},
	}
	for _, series := range contestants {
		s := craftSetup(series, 7)
		s.Heartbeat = 100 * time.Millisecond
		for _, x := range []float64{7, 6, 5, 4} {
			e.Cases = append(e.Cases, Case{
				Series: series, X: x, Setup: s, Work: writing(Work{For: time.Second, Down: 7 - int(x), Clients: 100}, 32),
			})
		}
	}
	e.Plots = []Plot{{
		Kind: Lines, Title: "Throughput against the number of healthy members", XLabel: healthy, Y: Bandwidth,
		Caption: "Higher is better. With four members rs-raft stops, and craft is raft.",
	}}
	at := func(series string, x float64) where { return where{series: series, x: x} }
	e.Claims = []Claim{
		{
			Text: "craft goes on with 4 of 7 members", Unit: "×",
			Measure: times(Bandwidth, at(seriesCraft, 4), at(seriesRaft, 4)), Holds: atLeast(0.8),
			Note: "Craft's throughput with four members over raft's. The paper says: just like Raft.",
		},
		{
			Text: "rs-raft does not", Unit: "MiB/s",
			Measure: figure(Bandwidth, at(seriesRS, 4)), Holds: func(v float64) bool { return v == 0 },
			Note: "Throughput with four members; 0 is what the paper says.",
		},
		{
			Text: "with one member down craft is like rs-raft", Unit: "×",
			Measure: times(Bandwidth, at(seriesCraft, 6), at(seriesRS, 6)), Holds: atLeast(0.8),
			Note: "Craft's throughput with six members over rs-raft's.",
		},
		{
			Text: "with two members down craft is still faster than raft", Unit: "×",
			Measure: times(Bandwidth, at(seriesCraft, 5), at(seriesRaft, 5)), Holds: func(v float64) bool { return v > 1 },
			Note: "Not in the paper, whose craft sends whole copies then.",
		},
	}
	return e
}

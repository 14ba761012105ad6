package paper

func craftLatency() *Experiment {
	e := &Experiment{
		Title: "Write latency of large values", Source: craftPaper + ", figures 8 and 9",
		Text: []string{
			"With raft the leader sends every value whole to every follower; with k = 3 a third of it. What a write takes " +
				"grows with the bytes that must leave the leader before enough members have theirs on disk.",
			setupText,
			"What is measured is the leader's part, from the proposal until its state machine has applied it; the paper's " +
				"figures also show the way from the client to the leader, which is the same for all, and says that its subject " +
				"is the other part. With 5 members and k = 3 craft needs all five; with raft three of five are enough, so a slow " +
				"member shows in craft's latency and not in raft's.",
		},
		XName: five, Rounds: 7, QuickRounds: 3,
		Table: []Metric{P50, P99, Bandwidth, Egress, Written, Syncs, CPU},
	}
	for _, part := range []string{five, seven} {
		for _, series := range contestants {
			for _, x := range craftSizes {
				quick := x == 1 || x == 16 || x == 512 || x == 2048
				requests, repeat := 30, 3
				if x > 64 {
					requests, repeat = 6, 1
				}
				e.Cases = append(e.Cases, Case{
					Series: series, Part: part, X: x, Setup: craftSetup(series, membersOf(part)), Full: !quick, Times: repeat,
					Work: writing(Work{Requests: requests, Clients: 1}, x),
				})
			}
		}
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: "Write latency, " + part[len("KiB, "):], Part: part, XLabel: "value, KiB", Y: P50,
			LogX: true, LogY: true,
			Caption: "Lower is better; both scales are logarithmic. Whiskers are the middle half of the runs.",
		})
		e.Claims = append(e.Claims, latencyClaims(part)...)
	}
	return e
}

func latencyClaims(part string) []Claim {
	members, best := part[len("KiB, "):], 45.0
	if part == seven {
		best = 60.8
	}
	return []Claim{
		{
			Text: "craft's latency is at least 60 % below raft's for values of 512 KiB and more, " + members, Paper: best,
			Unit:    "%",
			Measure: lessThan(P50, seriesCraft, seriesRaft, part, 512, 1024, 2048), Holds: atLeast(60),
			Note: "Medians, at the size where it is least. The paper gives its best, and 20 % as its least.",
		},
		{
			Text: "large values are at least 20 % faster with craft, " + members, Paper: 20, Unit: "%",
			Measure: lessThan(P50, seriesCraft, seriesRaft, part, 128, 256, 512, 1024, 2048), Holds: atLeast(20),
			Note: "Medians, at the size from 128 KiB on where it is least.",
		},
		{
			Text: "small values are no slower with craft than with raft, " + members, Paper: 1, Unit: "×",
			Measure: worstQuiet(P50, seriesCraft, seriesRaft, part, 1, 4, 16), Holds: atMost(1.1),
			Note: "Craft's median latency over raft's (lower quartiles of the runs), at the size up to 16 KiB where it is " +
				"most. The paper says that they perform evenly.",
		},
	}
}

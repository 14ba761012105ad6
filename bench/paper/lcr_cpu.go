package paper

func lcrCPU() *Experiment {
	e := &Experiment{
		Title: "CPU at equal throughput", Source: lcrPaper + ", figures 17 and 21",
		Text: []string{
			lcrProcessText, lcrWorkText + " Commands come at a rate here, so that all contestants do the same work.",
			"A member's CPU is what its process used in user and kernel mode: the log, its links, and speaking with its " +
				"clients, which each member does for the same number of them. The part that is per command falls with the rate, " +
				"because what comes together is written together.",
			lcrBatchText, lcrMultiText,
		},
		XName: byRate(5), Rounds: 3, QuickRounds: 1,
		Table: []Metric{LeaderLoad, FollowerLoad, LeaderCPU, FollowerCPU, Throughput, PlainP50, BlindP50},
	}
	e.Cases = rateCases(processRates)
	for _, part := range []string{byRate(5), byRate(9), byBatchedRate} {
		for _, y := range []Metric{LeaderLoad, FollowerLoad} {
			e.Plots = append(e.Plots, Plot{
				Kind: Lines, Title: y.label() + ", over " + part, Part: part, XLabel: part, Y: y,
				Caption: "Lower is better. Whiskers are the middle half of the runs.",
			})
		}
	}
	at := func(series string, x float64, part string) where { return where{series, x, part} }
	e.Claims = []Claim{
		{
			Text: "the leader of 5 uses at most 1.1 times as much as raft's", Unit: "×",
			Measure: times(LeaderLoad, at(seriesOf(0.56), 800, byRate(5)), at(seriesRaft, 800, byRate(5))), Holds: atMost(1.1),
			Note: "56 % blind commands at 800 commands/s. The paper says: slightly higher than raft's.",
		},
		{
			Text: "the leader of 9 uses at least 5 % less than raft's", Paper: 5, Unit: "%",
			Measure: lessThan(LeaderLoad, seriesOf(0.56), seriesRaft, byRate(9), 400), Holds: atLeast(5),
			Note: "The same with 9 members at 400 commands/s. The paper says 5 to 10 %.",
		},
		{
			Text: "a follower of 9 uses no more than raft's leader", Unit: "×",
			Measure: overOther(FollowerLoad, at(seriesOf(0.56), 400, byRate(9)), LeaderLoad, at(seriesRaft, 400, byRate(9))),
			Holds:   atMost(1),
			Note:    "The mean follower's CPU with lcr over that of raft's leader.",
		},
		{
			Text: "with batches the leader uses no more than raft's", Unit: "×",
			Measure: times(LeaderLoad, at(seriesOf(0.56), 3000, byBatchedRate), at(seriesRaft, 3000, byBatchedRate)),
			Holds:   atMost(1.05),
			Note:    "5 members, braid's own batches, 3,000 commands/s. Not in the paper.",
		},
	}
	return e
}

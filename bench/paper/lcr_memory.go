package paper

import "slices"

// processRates are the rates for members in separate processes.
var processRates = []rates{
	{byRate(5), 5, lcrProcesses, []float64{200, 400, 800, 1200}, 800},
	{byRate(9), 9, lcrProcesses, []float64{200, 400, 800}, 400},
	{byBatchedRate, 5, batchedProcesses, []float64{1000, 3000, 6000}, 3000},
}

func lcrMemory() *Experiment {
	e := &Experiment{
		Title: "Memory at equal throughput", Source: lcrPaper + ", figure 20",
		Text: []string{
			lcrProcessText, lcrWorkText + " Commands come at a rate here, so that all contestants do the same work.",
			"The heap in use is what is left when a member has collected garbage, while commands go on. A process occupies " +
				"more: its program, stacks, and a heap that may grow four times before it is collected (GOGC=400, as the server " +
				"has it). The state machine keeps nothing but a hash and a bit for each command.",
			"A blind command is in memory as a part of its lane until the log has it, committed. How much that is follows " +
				"from the rate and from how long that takes; a lane's window is its limit, if nobody leads.",
			lcrBatchText, lcrMultiText,
		},
		XName: byRate(5), Rounds: 3, QuickRounds: 1,
		Table: []Metric{LeaderHeap, FollowerHeap, LeaderResident, FollowerResident, Throughput},
	}
	e.Cases = rateCases(slices.Insert(slices.Clone(processRates), 1,
		rates{byRate(7), 7, lcrProcesses, []float64{200, 400, 800}, 400}))
	for _, n := range []int{10, 40, 160} {
		w := mixed(clientsLatency, 0.56)
		w.Clients = n
		e.Cases = slices.Concat(e.Cases, contest(byClients, 5, lcrProcesses, float64(n), w, n == 160))
	}
	for _, part := range []string{byRate(5), byRate(7), byRate(9), byClients, byBatchedRate} {
		for _, y := range []Metric{LeaderHeap, FollowerHeap} {
			e.Plots = append(e.Plots, Plot{
				Kind: Lines, Title: y.label() + ", over " + part, Part: part, XLabel: part, Y: y,
				Caption: "Lower is better. Whiskers are the middle half of the runs.",
			})
		}
	}
	claim := func(who string, m Metric, members int, x float64) Claim {
		part := byRate(members)
		return Claim{
			Text: who + " has at most 1 MiB more in use than raft's", Unit: "MiB",
			Measure: more(m, where{seriesOf(0.56), x, part}, where{seriesRaft, x, part}), Holds: atMost(1),
			Note: "56 % blind commands, heap in use. The paper says that it is some KB.",
		}
	}
	e.Claims = []Claim{
		claim("the leader of 5", LeaderHeap, 5, 800), claim("a follower of 5", FollowerHeap, 5, 800),
		claim("the leader of 9", LeaderHeap, 9, 400), claim("a follower of 9", FollowerHeap, 9, 400),
	}
	return e
}

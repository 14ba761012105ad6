package paper

func craftRead() *Experiment {
	e := &Experiment{
		Title: "Reading from a new leader", Source: craftPaper + ", figure 14",
		Text: []string{
			"A value is written, leadership moves to another member, and that one is read from ten times. With raft the new " +
				"leader has the value. With craft it has a fragment: the first read fetches k − 1 more and puts the value " +
				"together, later ones find it in memory.",
			"A read is what a client would see: the new leader makes sure that it still leads, and the value goes to another " +
				"machine over its link of 550 Mbit/s (here: to the program of another member). In both cases the value crosses " +
				"one such link; the fragments come over two others at the same time. The table also has what the leader itself " +
				"takes, without the way to the client: there a value in memory costs next to nothing, so the first read with " +
				"craft is many times that, whatever the protocol.",
			"Leadership is handed over, not lost: the paper does not say how its leaders became new, and what happened before " +
				"does not matter to the read.",
			setupText,
		},
		XName: five, Rounds: 5, QuickRounds: 2,
		Table: []Metric{FirstRead, MeanRead, FirstLocal, NextLocal},
	}
	sizes := []float64{512, 1024, 2048, 4096, 8192, 16384}
	for _, series := range []string{seriesRaft, seriesCraft} {
		for _, x := range sizes {
			e.Cases = append(e.Cases, Case{
				Series: series, X: x, Setup: craftSetup(series, 5), Full: x != 512 && x != 2048 && x != 8192,
				Work: writing(Work{Requests: 1, Clients: 1, Reads: 10}, x),
			})
		}
	}
	e.Plots = []Plot{
		{Kind: Lines, Title: "The first read from a new leader", XLabel: "value, KiB", Y: FirstRead, LogX: true, LogY: true,
			Caption: "Lower is better; both scales are logarithmic."},
		{Kind: Lines, Title: "The mean of ten reads from a new leader", XLabel: "value, KiB", Y: MeanRead, LogX: true,
			LogY: true, Caption: "Lower is better; both scales are logarithmic."},
	}
	e.Claims = []Claim{
		{
			Text: "the first read from a new leader takes at most twice as long with craft as with raft", Paper: 2.4, Unit: "×",
			Measure: worst(FirstRead, seriesCraft, seriesRaft, "", sizes...), Holds: atMost(2),
			Note: "Medians, at the size where it is most; with the way to the client, as in the paper, which says: " +
				"at most 140 % more.",
		},
		{
			Text: "ten reads take about the same", Unit: "×",
			Measure: worst(MeanRead, seriesCraft, seriesRaft, "", sizes...), Holds: atMost(1.25),
			Note: "Mean of ten reads with craft over that with raft, at the size where it is most. The paper calls " +
				"them close enough.",
		},
	}
	return e
}

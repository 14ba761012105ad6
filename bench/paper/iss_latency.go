package paper

import (
	"fmt"
	"slices"
	"time"
)

const (
	byISSLatency = "one-way latency in ms, 300 commands/s, 3 members"
	issApart     = 5.0 // of the claims, ms
	lowRate      = 300.0
	// seriesISSRemote is measured by clients of a member that does not lead: a learner.
	seriesISSRemote = "iss, at a learner"
)

// issRates are the offered rates: a tenth of the thesis's low load, that load, and up to a hundred times as much.
var issRates = []float64{540, thesisLow, 10 * thesisLow, 100 * thesisLow}

func issLatency() *Experiment {
	e := &Experiment{
		Title: "Latency over offered load", Source: issPaper + ", figures 23 to 28",
		Text: []string{
			issText, issRateText, issForwarded,
			"Straight into the log a read and a write are the same: a command of 16 bytes that is ordered. The thesis's " +
				"clients only read, through consensus.",
			"A segment is the slots of one leader in an epoch, and a leader without commands may wait before it gives slots " +
				"up. The thesis's settings, 32, 64 and 128 slots and 0 and 30 ms, are beside braid's own, which are 64 to 1,024 " +
				"slots as the load is.",
			issWebText,
			fmt.Sprintf("The links of the last part have a latency, and %g commands/s come in all. There the leader of "+
				"multi-paxos is also asked directly, which is the least that one round trip allows. And there are clients at a "+
				"member of iss that does not lead: a learner, beside three voters. What it brings is forwarded.", lowRate),
		},
		XName: byRateOf(3), Rounds: 3, QuickRounds: 1,
		Table: []Metric{P50, P99, Throughput, CPU, EgressAll, SyncsAll},
	}
	e.Cases = offeredCases()
	for _, n := range issMembers {
		for _, y := range []Metric{P50, P99} {
			e.Plots = append(e.Plots, Plot{
				Kind: Lines, Title: fmt.Sprintf("%s, %d members", y.label(), n), Part: byRateOf(n), XLabel: "commands/s offered",
				Y: y, LogX: true, LogY: true,
				Caption: "Lower is better. Whiskers are the middle half of the runs.",
			})
		}
	}
	for _, y := range []Metric{P50, P99} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: y.label() + " over HTTP, 3 members", Part: byWebRate(3), XLabel: "requests/s offered", Y: y,
			LogX: true, LogY: true,
			Caption: "Lower is better. Whiskers are the middle half of the runs.",
		})
	}
	e.Plots[0].Paper = []Curve{ // section 5.3
		{"thesis: EPaxos and WPaxos", seriesMultiPaxos, []float64{thesisLow}, []float64{1}},
		{"thesis: iss, least", seriesISS, []float64{thesisLow}, []float64{14}},
		{"thesis: iss, most", seriesISS, []float64{thesisLow}, []float64{60}},
	}
	e.Plots[2].Paper = []Curve{ // section 5.4
		{"thesis: EPaxos and WPaxos, at most", seriesMultiPaxos, []float64{thesisLow}, []float64{2}},
	}
	e.Plots = append(e.Plots, Plot{
		Kind: Lines, Title: "Median at low load, by latency of the links", Part: byISSLatency, XLabel: "latency, one way, ms",
		Y:       P50,
		Caption: "Lower is better. One round trip is twice the latency.",
	})
	e.Claims = offeredClaims()
	return e
}

func offeredCases() (cases []Case) {
	for _, n := range issMembers {
		for _, rate := range issRates {
			w := Work{For: time.Second, Rate: rate, Inflight: issInflight, At: AtMembers}
			quick := rate == thesisLow || rate == issRates[len(issRates)-1]
			for _, protocol := range []string{seriesRaft, seriesMultiPaxos, seriesISS} {
				cases = append(cases, Case{Series: protocol, Part: byRateOf(n), X: rate, Setup: issSetup(protocol, n),
					Work: w, Full: !quick})
			}
			w.At = AtLeader
			cases = append(cases, Case{Series: seriesPaxosLeader, Part: byRateOf(n), X: rate,
				Setup: issSetup(seriesMultiPaxos, n), Work: w, Full: !quick})
		}
	}
	return slices.Concat(linkCases(), cases, webCases(), fixedCases())
}

// linkCases are those with a latency between members.
func linkCases() (cases []Case) {
	learner := issSetup(seriesISS, 4)
	learner.Learners = 1
	for _, l := range []float64{1, issApart, 20} {
		w := Work{For: 2 * time.Second, Rate: lowRate, At: AtMembers, Net: lcrNet(l)}
		add := func(series string, s Setup, w Work) {
			cases = append(cases, Case{Series: series, Part: byISSLatency, X: l, Setup: s, Work: w, Full: l != issApart})
		}
		for _, protocol := range []string{seriesRaft, seriesMultiPaxos, seriesISS} {
			add(protocol, issSetup(protocol, 3), w)
		}
		w.Of = learner.Members
		add(seriesISSRemote, learner, w)
		w.At, w.Of = AtLeader, 0
		add(seriesPaxosLeader, issSetup(seriesMultiPaxos, 3), w)
	}
	return cases
}

func offeredClaims() (claims []Claim) {
	asked := where{seriesPaxosLeader, issApart, byISSLatency}
	claims = []Claim{
		{
			Text: "where the member leads, a command takes at most 1.1 times what a multi-paxos leader takes that is asked " +
				"itself", Unit: "×",
			Measure: times(P50, where{seriesISS, issApart, byISSLatency}, asked), Holds: atMost(1.1),
			Note: "Medians at 300 commands/s, members 5 ms apart. The thesis's is 14 to 60 times EPaxos's, at 5,400 " +
				"commands/s in a local network.",
		},
		{
			Text: "where it does not, at most 2 times", Unit: "×",
			Measure: times(P50, where{seriesISSRemote, issApart, byISSLatency}, asked), Holds: atMost(2),
			Note: "The same for clients of a learner. Its commands go to a leader and are decided in a round trip there; that " +
				"it is so comes back with the next message. That is two round trips.",
		},
		{
			Text: "the 99th percentile too, at most 1.5 times", Unit: "×",
			Measure: times(P99, where{seriesISS, issApart, byISSLatency}, asked), Holds: atMost(1.5),
			Note: "Where the member leads. Epochs of a cluster with little load are short, and what comes between two of them " +
				"waits for up to two round trips.",
		},
	}
	for _, n := range issMembers {
		claims = append(claims,
			Claim{
				Text: fmt.Sprintf("on bare loopback %d members take at most 1.1 times what a multi-paxos leader takes that is "+
					"asked itself", n), Paper: map[int]float64{3: 14}[n], Unit: "×",
				Measure: times(P50, where{seriesISS, thesisLow, byRateOf(n)}, where{seriesPaxosLeader, thesisLow, byRateOf(n)}),
				Holds:   atMost(1.1),
				Note: fmt.Sprintf("Medians at 5,400 commands/s. There is no latency to hide: all %d members write what they "+
					"lead at once, on one disk and two cores, and every leader that is idle tells all others that it skips. Where "+
					"commands come to all members, multi-paxos's median is the series without \"at its leader\".", n),
			},
			Claim{
				Text: fmt.Sprintf("with batches %d members do at least 10 times the thesis's rate", n), Unit: "×",
				Measure: scaled(func(r *Result) (float64, bool) {
					top := r.highest(Throughput, seriesISS, byRateOf(n))
					return top, top > 0
				}, 1/thesisRate), Holds: atLeast(10),
				Note: "The highest throughput of iss, over 6,000 commands/s, which is what the thesis's program did on the " +
					"machine on which this was measured first. It has no batches, and no disk.",
			},
		)
	}
	return slices.Concat(claims, webClaims())
}

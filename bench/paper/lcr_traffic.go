package paper

import (
	"fmt"
	"slices"
	"time"
)

// Parts of the experiment besides those of byRate.
const byBatchedRate = "commands/s, 5 members, batches"

func byRate(members int) string { return fmt.Sprintf("commands/s, %d members", members) }

func lcrTraffic() *Experiment {
	e := &Experiment{
		Title: "Network traffic at equal throughput", Source: lcrPaper + ", figures 18 and 19",
		Text: []string{
			lcrText, lcrWorkText + " Commands come at a rate here, so that all contestants do the same work.",
			"What is counted is what members hand to their connections: commands, signals, acknowledgements, heartbeats and " +
				"what is passed on to the leader, without headers of TCP. With raft the leader sends each command to everybody. " +
				"With lcr the member of a blind command does, and the leader sends a signal. Each member acknowledges to whoever " +
				"sent it something. The paper's figure 19 shows what followers send more; here it is in the sum of all members.",
			lcrBatchText + " With batches a signal stands for many commands.", lcrMultiText,
		},
		XName: byRate(5), Rounds: 3, QuickRounds: 1,
		Table: []Metric{Egress, EgressAll, Throughput, PlainP50, BlindP50, CPU, SyncsAll, SyncAllMean},
	}
	e.Cases = rateCases(trafficRates)
	for _, part := range []string{byRate(5), byRate(9), byBatchedRate} {
		for _, y := range []Metric{Egress, EgressAll} {
			e.Plots = append(e.Plots, Plot{
				Kind: Lines, Title: y.label() + ", over " + part, Part: part, XLabel: part, Y: y,
				Caption: "Lower is better. Whiskers are the middle half of the runs.",
			})
		}
	}
	less := func(text string, m Metric, part string, x, paper, want float64, note string) Claim {
		return Claim{Text: text, Paper: paper, Unit: "%", Measure: lessThan(m, seriesOf(0.56), seriesRaft, part, x),
			Holds: atLeast(want), Note: note}
	}
	e.Claims = []Claim{
		less("the leader of 5 sends at least 40 % less", Egress, byRate(5), 800, 30, 40, "Bytes for each command at 800 "+
			"commands/s with 56 % blind commands. Self-clocked signals allow 47 %. The paper says 20 to 30 %."),
		less("the leader of 9 sends at least 40 % less", Egress, byRate(9), 400, 30, 40,
			"The same with 9 members at 400 commands/s."),
		less("with batches the leader sends at least 30 % less", Egress, byBatchedRate, 10_000, 0, 30,
			"The same with 5 members and braid's own batches, at 10,000 commands/s. Not in the paper."),
		{
			Text: "all members together send at most 1.25 times as much", Unit: "×",
			Measure: times(EgressAll, where{seriesOf(0.56), 800, byRate(5)}, where{seriesRaft, 800, byRate(5)}),
			Holds:   atMost(1.25),
			Note: "5 members at 800 commands/s, 56 % blind commands. The paper says that it is much less " +
				"than with multi-raft.",
		},
		{
			Text: "all members together send less than with multi-raft", Unit: "×",
			Measure: times(EgressAll, where{seriesOf(0.56), 800, byRate(5)}, where{seriesMultiRaft, 800, byRate(5)}),
			Holds:   atMost(1),
			Note:    "The same, over multi-raft's. There a command of a group that another member leads is passed on to it.",
		},
	}
	return e
}

// rates are a part of an experiment with commands at some rates, and its setup. Quick runs have one of the rates, and
// of lcr only the largest share.
type rates struct {
	part    string
	members int
	setup   func(protocol string, members int) Setup
	rates   []float64
	quick   float64
}

var trafficRates = []rates{
	{byRate(5), 5, lcrSetup, []float64{200, 400, 800, 1200}, 800},
	{byRate(9), 9, lcrSetup, []float64{200, 400, 800, 1200}, 400},
	{byBatchedRate, 5, lcrBatched, []float64{1000, 3000, 10_000, 30_000}, 10_000},
}

// rateCases are raft and lcr with all shares, at all rates.
func rateCases(parts []rates) (cases []Case) {
	for _, p := range parts {
		for _, rate := range p.rates {
			for _, share := range lcrShares {
				w := Work{For: time.Second, Rate: rate, Payload: lcrBytes, At: AtMembers, Blind: share, Net: lcrNet(clientsLatency)}
				some := contest(p.part, p.members, p.setup, rate, w, rate == p.quick)
				lcr := onlyLCR(some)
				lcr[0].Full = lcr[0].Full || share != mostBlind
				if share != lcrShares[0] {
					some = lcr
				}
				cases = slices.Concat(cases, some)
			}
		}
	}
	return cases
}

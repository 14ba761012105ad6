package paper

import (
	"fmt"
	"slices"
	"time"
)

const (
	clientsLatency = 5.0  // ms, one way: a round trip takes 10
	clientsShare   = 0.25 // of blind commands
	// saturated is the maximal rate of raft's leader: 16 commands in a round trip of 10 ms.
	saturated = 1600.0
	// offeredInflight is the maximal number of commands in progress at a rate.
	offeredInflight = 160
)

// Parts of the experiment.
const (
	byClients        = "clients"
	byOffered        = "commands/s offered"
	byBatchedClients = "clients, batches"
)

func lcrClientCounts() *Experiment {
	e := &Experiment{
		Title: "Throughput and response time over clients", Source: lcrPaper + ", figure 15",
		Text: []string{
			lcrText, lcrWorkText,
			"In closed loops a leader that does less makes clients write more, so responses gain little: with W workers and C " +
				"clients raft's take C/W round trips. Where commands come at a rate, as from sensors, it is different: what " +
				"saturates raft's leader keeps lcr's busy for a part of its time only. So both are also offered rates up to " +
				"raft's saturation, 16 commands in 10 ms. Latency counts from when a command was due, and what is due while 160 " +
				"are under way is dropped.",
			lcrBatchText, lcrMultiText,
		},
		XName: byClients, Rounds: 3, QuickRounds: 1,
		Table: []Metric{Throughput, P50, PlainP50, PlainMean, BlindP50, BlindMean, Egress, CPU, SyncsAll, SyncAllMean},
	}
	e.Cases = clientCases()
	for _, p := range []struct {
		part string
		y    Metric
	}{
		{byClients, Throughput}, {byClients, PlainMean}, {byClients, BlindMean}, {byOffered, PlainP50}, {byOffered, BlindP50},
		{byBatchedClients, Throughput}, {byBatchedClients, PlainMean},
	} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: p.y.label() + ", over " + p.part, Part: p.part, XLabel: p.part, Y: p.y,
			LogX:    p.part != byOffered,
			Caption: "Whiskers are the middle half of the runs.",
		})
	}
	e.Claims = clientClaims()
	return e
}

func clientCases() (cases []Case) {
	for _, n := range []int{1, 5, 10, 20, 40, 80, 160} {
		w := mixed(clientsLatency, clientsShare)
		w.Clients = n
		cases = slices.Concat(cases, contest(byClients, 5, lcrSetup, float64(n), w, n == 10 || n == 40))
	}
	for _, rate := range []float64{400, 800, 1200, 1400, saturated} {
		for _, share := range []float64{clientsShare, 0.56} {
			w := Work{For: 2 * time.Second, Rate: rate, Inflight: offeredInflight, Payload: lcrBytes, At: AtMembers,
				Blind: share, Net: lcrNet(clientsLatency)}
			some := contest(byOffered, 5, lcrSetup, rate, w, rate == saturated)
			if share != clientsShare {
				some = onlyLCR(some)
			}
			cases = slices.Concat(cases, some)
		}
	}
	for _, n := range []int{40, 200, manyClients, 4 * manyClients} {
		w := mixed(clientsLatency, clientsShare)
		w.Clients = n
		cases = slices.Concat(cases, contest(byBatchedClients, 5, lcrBatched, float64(n), w, n == 40 || n == manyClients))
	}
	return cases
}

func clientClaims() []Claim {
	b := lcrBound(5, clientsShare)
	quarter := seriesOf(clientsShare)
	return []Claim{
		{
			Text: "with 40 clients lcr reaches 0.9 of the bound", Paper: 1.3 / b.leaderBound(), Unit: "of the bound",
			Measure: gained(byClients, clientsShare, b.leaderBound(), lcrClients), Holds: atLeast(0.9),
			Note: fmt.Sprintf("Throughput over raft's, over 1/(1 − x(N−1)/N) = %.2f. The paper says about 30 %% more.",
				b.leaderBound()),
		},
		{
			Text:  "in closed loops transactional commands are quicker by 0.9 of what the bound allows",
			Paper: 40, Unit: "%",
			Measure: lessThan(PlainMean, quarter, seriesRaft, byClients, lcrClients), Holds: atLeast(0.9 * b.quicker()),
			Note: fmt.Sprintf("Means with 40 clients. By our bound it is %.1f %% at most, although the paper says 40 to 60.",
				b.quicker()),
		},
		{
			Text: "at the rate that saturates raft transactional commands are at least 60 % quicker", Unit: "%",
			Measure: lessThan(PlainP50, seriesOf(0.56), seriesRaft, byOffered, saturated), Holds: atLeast(60),
			Note: "Medians at 1,600 commands/s, with 56 % blind commands. What raft takes there depends on how many commands " +
				"may be under way: 160.",
		},
		{
			Text: "a blind command takes at most 1.1 round trips until it is accepted", Unit: "round trips",
			Measure: scaled(figure(BlindP50, where{quarter, 10, byClients}), 1/(2*clientsLatency)), Holds: atMost(1.1),
			Note: "Median with 10 clients, over 10 ms. In the paper it is more than one, because the answer waits for the " +
				"leader's signal. It contains two fsyncs on a disk that all members share.",
		},
	}
}

// scaled is a figure in another unit.
func scaled(f measure, by float64) measure {
	return func(r *Result) (float64, bool) {
		v, ok := f(r)
		return v * by, ok
	}
}

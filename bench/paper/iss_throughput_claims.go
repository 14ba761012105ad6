package paper

import (
	"fmt"
	"slices"
)

// seriesBare is a server that answers at once.
const seriesBare = "bare HTTP"

func issThroughputPlots() (plots []Plot) {
	const whiskers = "Whiskers are the middle half of the runs."
	for _, batched := range []bool{false, true} {
		for _, n := range issMembers {
			for _, y := range []Metric{PerCPU, Throughput} {
				plots = append(plots, Plot{
					Kind: Lines, Title: fmt.Sprintf("%s, %d members, %s", y.label(), n,
						map[bool]string{false: "a command a message", true: "with batches"}[batched]),
					Part: byConflicts(n, batched), XLabel: "share of commands on one key, %", Y: y, Caption: "Higher is better. " +
						whiskers,
				})
			}
		}
	}
	for _, n := range issMembers {
		plots = append(plots,
			Plot{
				Kind: Lines, Title: fmt.Sprintf("%s at low load, %d members", P50.label(), n), Part: byLowRate(n),
				XLabel: "commands/s offered", Y: P50, LogX: true,
				Caption: "Lower is better. " + whiskers,
			},
			Plot{
				Kind: Lines, Title: fmt.Sprintf("%s over HTTP, %d members", Throughput.label(), n), Part: byLoopClients(n),
				XLabel: "clients", Y: Throughput,
				Caption: "Higher is better. " + whiskers,
			})
	}
	return plots
}

func issThroughputClaims() []Claim {
	return slices.Concat(costClaims(), lowClaims(), bareClaims())
}

func costClaims() (claims []Claim) {
	for _, n := range issMembers {
		for _, other := range []string{seriesEPaxos, seriesWPaxos} {
			at := func(series string) where { return where{series, 0, byConflicts(n, false)} }
			claims = append(claims, Claim{
				Text: fmt.Sprintf("with a command a message and %d members iss does at least 1.2 times as much in a second of "+
					"CPU as %s", n, other), Unit: "×",
				Measure: times(PerCPU, at(seriesISS), at(other)), Holds: atLeast(1.2),
				Note: "Straight into the log, no conflicts, 1,536 clients; CPU of all members and the load. The thesis has " +
					"throughput on cores that are not shared: more than twice.",
			})
		}
	}
	each := func(members int) where { return where{seriesISS, 0, byConflicts(members, true)} }
	return append(claims, Claim{
		Text: "from 3 to 6 members the CPU of iss for a command and member grows by at most 5 %", Paper: 1.1, Unit: "×",
		Measure: scaled(times(CPU, each(6), each(3)), 3./6), Holds: atMost(1.05),
		Note: "With batches, no conflicts, 1,536 clients: the CPU that a command takes of all members and the load, " +
			"divided by the number of members, with 6 over with 3. The thesis loses 10 % of throughput where each " +
			"member has a machine.",
	})
}

func lowClaims() (claims []Claim) {
	for _, n := range issMembers {
		claims = append(claims, Claim{
			Text:  fmt.Sprintf("at low load and with %d members the median of iss is at most 1.5 times epaxos's", n),
			Paper: map[int]float64{3: 14}[n], Unit: "×",
			Measure: times(P50, where{seriesISS, thesisLow, byLowRate(n)}, where{seriesEPaxos, thesisLow, byLowRate(n)}),
			Holds:   atMost(1.5),
			Note: "5,400 commands/s straight into the log, at all members, no conflicts. With 3 members the thesis's " +
				"is 14 to 60 times.",
		})
	}
	return claims
}

func bareClaims() (claims []Claim) {
	for _, series := range throughputSeries {
		var some []measure
		for _, n := range issMembers {
			for _, c := range loopClients {
				some = append(some, times(Throughput, where{series, c, byLoopClients(n)}, where{seriesBare, c, byLoopClients(n)}))
			}
		}
		claims = append(claims, Claim{
			Text: fmt.Sprintf("over HTTP %s does at least 0.7 of what a bare server does", series), Unit: "×",
			Measure: leastKnown(some...), Holds: atLeast(0.7),
			Note: "Writes of 16 bytes by clients in closed loops, with batches: the least of 64 and 256 clients and 3 and 6 " +
				"members, as far as they were measured. Members, servers and clients share the cores.",
		})
	}
	return claims
}

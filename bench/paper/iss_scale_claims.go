package paper

import (
	"fmt"
	"slices"
)

func issScale() *Experiment {
	e := &Experiment{
		Title: "4 to 128 members, by the cost model", Source: issPaper + ", future work of chapter 6",
		Text: []string{
			"The thesis stops at six servers and leaves more to future work. More than this machine has is computed, and such " +
				"series begin with the word model. Members execute the production code of the protocol, of group commit, of " +
				"batching and of the state machine's feeding in simulated time (package internal/sim/scale). CPU, disk and " +
				"network take what the pieces of that code cost on this machine just before. Each member has 8 cores, a disk of " +
				"its own and links over which a message takes as long as over loopback; the load has a core beside them.",
			"What a protocol's code costs is measured while a simulation runs it, for each type of message, with the fewest " +
				"members, the most, and a number between; the rest is on the lines through these. One factor on all costs of CPU " +
				"is fitted, the same for all protocols: to the CPU time of a command of epaxos, wpaxos and multi-paxos " +
				"with 3 members on this machine. It stands for garbage collection, the scheduler and what lies between " +
				"the pieces. Nothing else is fitted: not to iss or raft, and not to 6 members.",
			"Without batching an entry has one command, and a message one entry of those that it proposes. Up to 64 messages " +
				"are under way to a member. 1,536 commands are under way, as with the thesis's clients, and with raft and " +
				"multi-paxos fewer from 16 members on, where they only wait. Commands come to all members alike. With raft and " +
				"multi-paxos most are passed on to the leader.",
			"There are 12,000 keys in as many groups as members, at least 16, and the clients of a member use groups of their " +
				"own: nothing conflicts, and wpaxos passes nothing on. There are at most 64 groups, and so many members with " +
				"wpaxos. With conflicts a quarter of the commands touch one key that all use.",
			"Relays are about as many groups as the square root of the members. In a grid there are as many rows; in zones, a " +
				"row of members stands in each, of which two accept. Flexible quorums change whose answers count, and not to " +
				"whom messages go.",
			"A command a message at 5,400 commands/s, the thesis's low load, shows what a command takes by itself: messages, " +
				"bytes and fsyncs of all members. Heartbeats are in it. Round trips are the median latency over that of a " +
				"round trip of 40 ms.",
		},
		XName: byScale, Rounds: 3, QuickRounds: 1,
		Table: []Metric{Throughput, P50, P99, CPU, Messages, EgressAll, SyncsAll, RoundTrips},
	}
	for _, p := range fittedTo {
		e.Fit = append(e.Fit, where{p, 3, byScaleShared})
	}
	e.Cases = slices.Concat(sharedCases(), costCases(), batchedCases(), scaleCases())
	e.Plots = scalePlots()
	e.Claims = scaleClaims()
	return e
}

// sharedMembers are the sizes of clusters that are measured, and computed for comparison.
var sharedMembers = []float64{3, 6}

// fittedTo are the protocols that the processor limits on this machine, in a setting without other effects.
var fittedTo = []string{seriesEPaxos, seriesWPaxos, seriesMultiPaxos}

func scalePlots() (plots []Plot) {
	for _, y := range []Metric{Throughput, P50, CPU, Messages, SyncsAll, EgressAll} {
		plots = append(plots, Plot{
			Kind: Lines, Title: y.label() + ", by the members (model)", Part: byScale, XLabel: "members", Y: y,
			LogX: true, LogY: true,
			Caption: "Computed with the costs of this machine. Both scales are logarithmic.",
		})
	}
	return append(plots,
		Plot{
			Kind: Lines, Title: "Throughput with batches (model)", Part: byScaleBatches, XLabel: "members", Y: Throughput,
			LogX: true, LogY: true,
			Caption: "Higher is better. Both scales are logarithmic.",
		},
		Plot{
			Kind: Lines, Title: "The model beside what is measured", Part: byScaleShared, XLabel: "members", Y: Throughput,
			Caption: "All members and the load share the cores and the disk of this machine, in the model too.",
		},
		Plot{Kind: Lines, Title: "Messages of a command at low load (model)", Part: byScaleLow, XLabel: "members",
			Y: Messages, Caption: "Lower is better."},
		Plot{Kind: Lines, Title: "Round trips of a command (model)", Part: byScaleTrips, XLabel: "members", Y: RoundTrips,
			Caption: "Lower is better."})
}

func scaleClaims() (claims []Claim) {
	for _, n := range issMembers {
		for _, other := range []string{seriesEPaxos, seriesWPaxos} {
			at := func(series string) where { return where{modelPrefix + series, float64(n), byScale} }
			claims = append(claims, Claim{
				Text: fmt.Sprintf("with 8 cores a member and a command a message iss does at least twice as much as %s, %d "+
					"members (model)", other, n), Paper: 2, Unit: "×",
				Measure: times(Throughput, at(seriesISS), at(other)), Holds: atLeast(2),
				Off: modelOff(byScaleShared, sharedMembers, seriesISS, other),
				Note: "Computed, not measured. The thesis measured about twice. By the messages of a command alone, 2(n − 1) of " +
					"iss with acknowledgements for several, and 3(n − 1) of the others, it would be 1.3 to 1.5.",
			})
		}
	}
	for _, p := range scaleProtocols {
		claims = append(claims, Claim{
			Text: fmt.Sprintf("the model says what is measured of %s with 3 and with 6 members", p), Unit: "×",
			Measure: modelOff(byScaleShared, sharedMembers, p), Holds: atMost(mostOff),
			Note: "By how much the model's throughput or a command's CPU time is off, up or down, where it is most. " +
				"All members share this machine, in the model too. One factor for all protocols is fitted to the CPU " +
				"time of three of them with 3 members. Where this does not hold, what is computed of the protocol has " +
				"no verdict.",
		})
	}
	return claims
}

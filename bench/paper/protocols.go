package paper

import (
	"fmt"
	"time"
)

// The cost of a command with each protocol, under the same conditions: the source of docs/reports/comparison.md.

const (
	// costLatency is the one-way latency of links in this experiment, ms, and costRate the offered rate, commands/s.
	costLatency = 5.0
	costRate    = 200.0
	// costHeartbeat reduces the load of waiting clusters, which are many.
	costHeartbeat = 500 * time.Millisecond
	// largeWrites is the number of large values that are written, each of largeBytes.
	largeWrites = 64
	largeBytes  = 64 << 10
	// movesSoon is the number of requests after which a group of wpaxos moves here. The default needs more than a run
	// has.
	movesSoon = "consecutive:8"

	byMembers      = "members, clients at all of them"
	byMembersAsked = "members, clients at the leader"
	byMembersLarge = "members, values of 64 KiB, clients at the leader"

	seriesBlind = "lcr, blind commands"
	seriesOwn   = "wpaxos, own groups"
)

// costProtocols are those whose clients may be anywhere.
var costProtocols = []string{seriesRaft, seriesNiagara, seriesMultiRaft, seriesLCR, seriesMultiPaxos, seriesISS,
	seriesEPaxos, seriesWPaxos}

func protocolCosts() *Experiment {
	e := &Experiment{
		Title: "What a command costs, protocol by protocol", Source: "braid's own",
		Text: []string{
			"Contestants are one program, with the same disk, codec and links, and all members in this process. Links take 5 " +
				"ms one way, so a round trip is 10 ms. Commands of 16 bytes come at a rate of 200 a second, to all members " +
				"alike, and nothing is batched: each is an entry of its own. So what a command costs can be counted. Each has a " +
				"key of its own, so no two of them interfere.",
			"Messages, bytes and fsyncs are of all members together, with heartbeats, of which there are two a second. An " +
				"fsync may serve commands that came within the same moment. A latency is the median, so the time of fsyncs is " +
				"in it.",
			"Where only one member leads, commands of the others are passed on. With clients at the leader it is asked " +
				"directly. With multi-raft and wpaxos a command belongs to the group of its key, which another member may lead. " +
				"With own groups the clients of a member ask for keys of groups that nobody else asks for, and which wpaxos " +
				"moves to the member in the beginning.",
			"The last part is about values of 64 KiB from four clients at the leader, where placement code sends rows of them.",
		},
		XName: byMembers, Rounds: 3, QuickRounds: 1,
		Table: []Metric{P50, P99, Messages, EgressAll, SyncsAll, CPU},
	}
	for _, n := range []int{3, 5} {
		e.Cases = append(e.Cases, commandCases(n)...)
	}
	e.Cases = append(e.Cases, largeCases()...)
	for _, y := range []Metric{P50, Messages, EgressAll, SyncsAll} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: y.label(), Part: byMembers, XLabel: "members", Y: y,
			Caption: "Lower is better. Clients at all members, nothing batched, links of 5 ms.",
		})
	}
	e.Claims = commandClaims()
	return e
}

func commandSetup(protocol string, members int) Setup {
	s := issSetup(protocol, members)
	s.NoBatching, s.Heartbeat = true, costHeartbeat
	return s
}

func commandCases(members int) (cases []Case) {
	w := Work{For: 2 * time.Second, Rate: costRate, At: AtMembers, Payload: defaultPayload, Net: lcrNet(costLatency)}
	add := func(series, part string, s Setup, w Work) {
		cases = append(cases, Case{Series: series, Part: part, X: float64(members), Setup: s, Work: w})
	}
	for _, protocol := range costProtocols {
		add(protocol, byMembers, commandSetup(protocol, members), w)
	}
	blind, own := w, w
	blind.Blind, own.KeySpace = 1, webKeys
	add(seriesBlind, byMembers, commandSetup(seriesLCR, members), blind)
	near := commandSetup(seriesWPaxos, members)
	near.set("stealing=" + movesSoon)
	own.For = 2 * own.For // the groups move at the beginning
	add(seriesOwn, byMembers, near, own)
	w.At = AtLeader
	for _, protocol := range []string{seriesRaft, seriesMultiPaxos} {
		add(protocol, byMembersAsked, commandSetup(protocol, members), w)
	}
	return cases
}

// largeCases are large values with five members, for which fragments pay off.
func largeCases() (cases []Case) {
	w := Work{Requests: largeWrites, Clients: 4, At: AtLeader, Payload: defaultPayload, Body: largeBytes}
	for _, protocol := range []string{seriesRaft, "craft", "rs-raft"} {
		s := commandSetup(protocol, 5)
		s.Net = lcrNet(costLatency)
		cases = append(cases, Case{Series: protocol, Part: byMembersLarge, X: 5, Setup: s, Work: w})
	}
	return cases
}

func commandClaims() (claims []Claim) {
	trips := func(text, series, part string, members, most float64, note string) {
		claims = append(claims,
			Claim{Text: text, Unit: "RTT", Measure: scaled(figure(P50, where{series, members, part}), 1/(2*costLatency)),
				Holds: atMost(most), Note: note})
	}
	const one = 1.5 // a round trip, and two fsyncs one after the other
	for _, n := range []float64{3, 5} {
		at := func(what string) string { return fmt.Sprintf("%s; %g members", what, n) }
		trips(at("a leader of raft that is asked itself decides in a round trip"), seriesRaft, byMembersAsked, n, one,
			"The median, fsyncs included.")
		trips(at("so does one of multi-paxos"), seriesMultiPaxos, byMembersAsked, n, one, "The same.")
		trips(at("with clients everywhere iss decides in a round trip"), seriesISS, byMembers, n, one,
			"Each member proposes what its own clients bring. What is behind slots of others waits for these, too.")
		trips(at("so does an owner of wpaxos, for those who alone ask for its groups"), seriesOwn, byMembers, n, one,
			"The groups have moved to where they are asked for.")
		trips(at("so does epaxos"), seriesEPaxos, byMembers, n, one, "Without commands that interfere.")
		trips(at("and lcr accepts blind commands in a round trip"), seriesBlind, byMembers, n, one,
			"They are answered when a quorum has them, before they have a place in the order.")
	}
	return append(claims, Claim{
		Text: "fragments save bytes: craft sends about half of what raft sends", Unit: "×",
		Measure: times(EgressAll, where{"craft", 5, byMembersLarge}, where{seriesRaft, 5, byMembersLarge}),
		Holds:   atMost(0.55),
		Note:    "Bytes from all members for a value of 64 KiB, 5 members. A row is half of a value there (k = 2).",
	})
}

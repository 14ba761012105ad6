package paper

import (
	"fmt"
	"time"
)

// The meaning of Case.X in the experiment on network cards.
const (
	writesByCards = "cards, writes"
	slowerByCards = "cards of 100 Mbit/s, writes"
	readsByCards  = "cards, strong reads"
	mixedByCards  = "cards, nine strong reads to a write"
)

const (
	// writeCard is a card of the paper; slowCard and readCard are slow enough for two cores for all members to saturate
	// four on each, with entries and with answers.
	writeCard   = "egress=250mbit"
	slowCard    = "egress=100mbit"
	readCard    = "egress=10mbit"
	networkKeys = 1024
	// writingClients and readingClients are distributed over the members.
	writingClients, readingClients = 2000, 150
)

// networkSetup is a cluster with some cards; niagara has an instance for each. If clients only write, one member
// leads all instances, so that each has its own card; else leaders are spread, so that the entries leave capacity on
// each member's cards for answers to readers.
func networkSetup(series string, cards int, net string) Setup {
	s := Setup{Cards: cards, Net: net, Keys: networkKeys, SnapshotBytes: logBytes}
	if series == seriesNiagara {
		s.Protocol = "niagara"
		s.set(fmt.Sprint("instances=", cards), "leaders=together")
		if net == readCard {
			s.set("leaders=spread")
		}
	}
	return s
}

func niagaraNetwork() *Experiment {
	e := &Experiment{
		Title: "Network cards", Source: niagaraPaper + ", figure 5",
		Text: []string{
			"Three members with one, two or four network cards each, every one of which sends 250 Mbit/s at most, to " +
				"whomever. Raft's leader sends all entries over one connection to each follower, so over one card, whatever it " +
				"has. Niagara has an instance for each card. Where clients only write, one member leads all instances, so that " +
				"each has a card of its own there; four leaders on three members would leave two of them one card each to send " +
				"with. Where clients read the leaders are spread over the members, and every member's clients write there. 2,000 " +
				"clients wait for their answers, all at the leader. A member's answers to writes are small and stay in this " +
				"process, as do the clients' requests: cards are limited in what they send, not in what they receive.",
			"Two cores that all members share may not fill four cards of each as the paper's servers did, with four cores " +
				"each. So writes are also measured with cards of 100 Mbit/s, and strong reads with cards of 10 Mbit/s: reads are " +
				"answered by all members, over twelve cards, and each by itself.",
			"A strong read asks a member; that makes sure that its state is up to date, and sends the value. The reader is " +
				"another member's program, so the value comes over the cards of the member that was asked, as it would to a " +
				"client: over all of them in turn, with raft too. 150 readers are dealt out over all members.",
			"With reads alone coordination is small, as the paper says, and both are limited by the cards that the answers " +
				"leave from. Members gather reads: one round trip is for all that wait. That leaves little for several instances " +
				"to improve, and each read asks all of them. What does limit strong reads is company. When every tenth request " +
				"of the same clients is a write (at the leader with raft), the one card that raft's leader writes with carries " +
				"four fifths of its bytes as entries, and the reads of all members wait for answers from that card, while the " +
				"others have time. With niagara the writes leave from all members' cards. This is not in the paper.",
		},
		XName: writesByCards, Rounds: 3, QuickRounds: 1,
		Table: []Metric{Throughput, Reads, P50, P99, ReadP50, ReadP90, EgressAll, CPU},
	}
	e.Cases = networkCases()
	for _, p := range []struct {
		part, title string
		y           Metric
	}{
		{readsByCards, "Strong reads, cards of 10 Mbit/s", Reads}, {writesByCards, "Writes, cards of 250 Mbit/s", Throughput},
		{slowerByCards, "Writes, cards of 100 Mbit/s", Throughput},
		{mixedByCards, "Strong reads where every tenth request is a write, cards of 10 Mbit/s", Reads},
	} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: p.title, Part: p.part, XLabel: "network cards of a member", Y: p.y,
			Caption: "Higher is better. Whiskers are the middle half of the runs.",
		})
	}
	e.Claims = networkClaims()
	return e
}

func networkCases() (cases []Case) {
	writes := Work{For: 2 * time.Second, Clients: writingClients, Payload: 2 * kib}
	reads := Work{For: 2 * time.Second, Readers: readingClients, Payload: 2 * kib}
	mixed := reads
	mixed.WriteEvery = 10
	for _, series := range []string{seriesRaft, seriesNiagara} {
		for _, cards := range []int{1, 2, 4} {
			for _, c := range []struct {
				part, net string
				work      Work
				full      bool
			}{
				{writesByCards, writeCard, writes, cards == 2 || cards == 1 && series == seriesNiagara},
				{slowerByCards, slowCard, writes, cards != 4},
				{readsByCards, readCard, reads, cards != 4},
				{mixedByCards, readCard, mixed, cards != 4},
			} {
				cases = append(cases, Case{Series: series, Part: c.part, X: float64(cards),
					Setup: networkSetup(series, cards, c.net), Work: c.work, Full: c.full})
			}
		}
	}
	return cases
}

func networkClaims() []Claim {
	four := func(m Metric, part string) measure {
		return times(m, where{seriesNiagara, 4, part}, where{seriesRaft, 4, part})
	}
	return []Claim{
		{
			Text: "with four cards niagara writes at least 3.5 times as much as raft", Paper: 2.6, Unit: "×",
			Measure: four(Throughput, writesByCards), Holds: atLeast(3.5),
			Note: "Four instances over raft, both with four cards. Four cards allow four.",
		},
		{
			Text: "with four cards of 100 Mbit/s niagara writes at least 3.5 times as much as raft", Unit: "×",
			Measure: four(Throughput, slowerByCards), Holds: atLeast(3.5),
			Note: "The same with less for the cores to do. Not in the paper.",
		},
		{
			Text: "more cards do nothing for raft's writes", Unit: "×",
			Measure: times(Throughput, where{seriesRaft, 4, writesByCards}, where{seriesRaft, 1, writesByCards}),
			Holds:   atMost(1.1),
			Note:    "Raft with four cards over raft with one. The paper says: no significant effect.",
		},
		{
			Text: "with four cards niagara reads strongly 1.1 times as much as raft", Paper: 1.11, Unit: "×",
			Measure: four(Reads, readsByCards), Holds: atLeast(1.1),
			Note: "Reads alone. Four instances over raft, both with four cards.",
		},
		{
			Text: "where clients also write niagara reads strongly at least 1.5 times as much as raft", Unit: "×",
			Measure: four(Reads, mixedByCards), Holds: atLeast(1.5), Note: "Not in the paper. Every tenth request is a write; " +
				"both with four cards. By the bytes on the cards that limit it is 2.2.",
		},
	}
}

package paper

import (
	"time"

	"github.com/braidlog/braid"
)

// What Case.X is in the experiment on network cards.
const (
	writesByCards = "cards, writes"
	readsByCards  = "cards, strong reads"
	mixedByCards  = "cards, strong reads beside writes"
)

const (
	// writeCard is a card of the paper, readCard one that two cores can fill with answers
	// as its four cores could fill the paper's.
	writeCard = "egress=250mbit"
	readCard  = "egress=25mbit"
	// besideReads is how many writes a second go on beside reads: about four fifths of what a
	// card for reads carries of them to two followers.
	besideReads = 600
	networkKeys = 1024
)

// networkSetup is a cluster with some cards; niagara has an instance for each.
func networkSetup(series string, cards int, net string) Setup {
	s := Setup{Cards: cards, Net: net, Keys: networkKeys}
	if series == seriesNiagara {
		s.Protocol, s.Instances, s.Leaders = "niagara", cards, braid.LeadersSpread
	}
	return s
}

func niagaraNetwork() *Experiment {
	e := &Experiment{
		Name: "niagara-network", Title: "Network cards", Source: niagaraPaper + ", figure 5",
		Short: "Writes and strong reads of values of 2 KiB with 1 to 4 network cards for each member: raft and niagara.",
		Text: []string{
			"Three members with one, two or four network cards each, every one of which sends 250 Mbit/s at most, to whomever. Raft's leader sends all entries over one connection to each follower, so over one card, whatever it has. Niagara has an instance for each card, and its leaders are spread over the members; every member's clients write there. 600 clients wait for their answers; those of raft are all at the leader. A member's answers to writes are small and stay in this process, as do the clients' requests: cards are limited in what they send, not in what they receive.",
			"A strong read asks a member; that makes sure that its state is up to date, and sends the value. The reader is another member's program, so the value comes over the cards of the member that was asked, as it would to a client: over all of them in turn, with raft too. 300 readers are dealt out over all members. The two cores of this machine cannot fill twelve cards of 250 Mbit/s with answers, as the paper's twelve could; so the cards have a tenth of that where reads are measured.",
			"With reads alone coordination is small, as the paper says, and both are limited by the cards that the answers leave from. Members gather reads: one round trip is for all that wait. That leaves little for several instances to improve, and each read asks all of them. What does limit strong reads is company: beside 600 writes a second, which fill four fifths of the one card that raft's leader writes with, every read on every member waits for an answer from that card. With niagara the same writes leave from several cards and members. This is not in the paper.",
		},
		XName: writesByCards, Rounds: 3, QuickRounds: 2,
		Table: []Metric{Throughput, Reads, P50, P99, ReadP50, ReadP90, EgressAll, CPU},
	}
	for _, series := range []string{seriesRaft, seriesNiagara} {
		for _, cards := range []int{1, 2, 4} {
			c := Case{Series: series, Part: writesByCards, X: float64(cards), Full: cards == 2, Setup: networkSetup(series, cards, writeCard)}
			c.Work = Work{For: 2 * time.Second, Clients: 600, Payload: 2 * kib}
			e.Cases = append(e.Cases, c)
			c.Setup, c.Part = networkSetup(series, cards, readCard), readsByCards
			c.Work = Work{For: 2 * time.Second, Readers: 300, Payload: 2 * kib}
			e.Cases = append(e.Cases, c)
			c.Part, c.Work.Rate = mixedByCards, besideReads
			e.Cases = append(e.Cases, c)
		}
	}
	for _, p := range []struct {
		part, title string
		y           Metric
	}{
		{readsByCards, "Strong reads", Reads}, {writesByCards, "Writes", Throughput}, {mixedByCards, "Strong reads beside 600 writes a second", Reads},
	} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: p.title, Part: p.part, XLabel: "network cards of a member", Y: p.y, Caption: "Higher is better. Whiskers are the middle half of the runs.",
		})
	}
	e.Claims = networkClaims()
	return e
}

func networkClaims() []Claim {
	four := func(m Metric, part string) measure {
		return times(m, where{seriesNiagara, 4, part}, where{seriesRaft, 4, part})
	}
	return []Claim{
		{
			Text: "with four cards niagara writes at least 3.5 times as much as raft", Paper: 2.6, Unit: "×",
			Measure: four(Throughput, writesByCards), Holds: atLeast(3.5), Note: "Four instances over raft, both with four cards. Four cards allow four.",
		},
		{
			Text: "more cards do nothing for raft's writes", Unit: "×",
			Measure: times(Throughput, where{seriesRaft, 4, writesByCards}, where{seriesRaft, 1, writesByCards}), Holds: atMost(1.1),
			Note: "Raft with four cards over raft with one. The paper says: no significant effect.",
		},
		{
			Text: "with four cards niagara reads strongly 1.1 times as much as raft", Paper: 1.11, Unit: "×",
			Measure: four(Reads, readsByCards), Holds: atLeast(1.1), Note: "Reads alone. Four instances over raft, both with four cards.",
		},
		{
			Text: "beside writes niagara reads strongly at least 1.5 times as much as raft", Unit: "×",
			Measure: four(Reads, mixedByCards), Holds: atLeast(1.5), Note: "Not in the paper. The same writes in both; both with four cards.",
		},
	}
}

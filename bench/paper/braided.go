package paper

import (
	"time"
)

// The contestants of the experiment on braided coding, besides raft.
const (
	seriesCoded   = "craft"
	seriesSpread  = "niagara, R = 5"
	seriesBraided = "niagara over code, R = 5"
	seriesThirds  = "niagara over code, R = 5, k = 3"
)

// braidedCard is a network card in this experiment: five members on two cores can saturate theirs.
const braidedCard = "egress=100mbit"

// braidedSetup is a cluster of five, with one network card each.
func braidedSetup(series string) Setup {
	s := Setup{Members: 5, Net: braidedCard, SnapshotBytes: logBytes}
	switch series {
	case seriesCoded:
		s.Protocol = "craft"
	case seriesSpread:
		s.Protocol = "niagara"
		s.set("instances=5", "leaders=spread")
	case seriesThirds:
		s.set("code-k=3")
		fallthrough
	case seriesBraided:
		s.Protocol = "niagara"
		s.set("instances=5", "leaders=spread", "placement=code")
	}
	return s
}

// braidedClients have 20 MiB of values of 512 KiB in progress together: enough to keep all links busy while others
// wait for an answer.
const braidedClients = 40

func braidedCoding() *Experiment {
	const at = 512
	e := &Experiment{
		Title:  "Braided coding",
		Source: "braid's own: NIAGARA over CRaft's placement, which no paper combines",
		Text: []string{
			"Raft's leader sends a value four times. With fragments (craft) it sends less of it, and still alone. With an " +
				"instance led by each member (niagara) all five links send, and each sends values whole. Niagara over coded " +
				"bodies does both: every member leads an instance, and sends fragments.",
			"What the links allow, in values for what one link sends: raft 1/4; craft k/4; niagara 5/4; niagara over code " +
				"5k/4, so ten times raft with two fragments to a value, the default with five members, and fifteen times with " +
				"three. With three, all five members must answer before a write counts; with two, one of them may be late.",
			"40 clients wait for their answers, 20 with values of 1 MiB: at the leader, or at all members where all lead. " +
				"Each member's link sends 100 Mbit/s at most. All members run in this process, with real fsyncs, and share two " +
				"cores and one disk; with faster links these would be what limits the fastest.",
		},
		XName: "KiB", Rounds: 3, QuickRounds: 1,
		Table: []Metric{Bandwidth, Throughput, P50, P99, EgressAll, Egress, CPU},
	}
	for _, series := range []string{seriesRaft, seriesCoded, seriesSpread, seriesBraided, seriesThirds} {
		for _, x := range []float64{128, at, 1024} {
			e.Cases = append(e.Cases, Case{
				Series: series, X: x, Setup: braidedSetup(series), Full: x != at || series == seriesThirds,
				Work: writing(Work{For: 4 * time.Second, Clients: braidedClients * at / max(at, int(x))}, x),
			})
		}
	}
	e.Plots = []Plot{{
		Kind: Lines, Title: "Values written, five members with a link of 100 Mbit/s each", XLabel: "value, KiB", Y: Bandwidth,
		LogX: true, LogY: true,
		Caption: "Higher is better; both scales are logarithmic.",
	}}
	over := func(series, other string) measure {
		return times(Bandwidth, where{series: series, x: at}, where{series: other, x: at})
	}
	e.Claims = []Claim{
		{
			Text: "niagara over code writes at least 8 times as much as raft", Unit: "×",
			Measure: over(seriesBraided, seriesRaft), Holds: atLeast(8),
			Note: "Values of 512 KiB, k as braid chooses it. The links allow 10.",
		},
		{
			Text: "it writes more than each of the two alone", Unit: "×",
			Measure: least(over(seriesBraided, seriesCoded), over(seriesBraided, seriesSpread)), Holds: atLeast(1.5),
			Note: "Over craft or over niagara, whichever is nearer. The links allow 5 and 2.",
		},
	}
	return e
}

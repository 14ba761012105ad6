package paper

import (
	"strings"
	"time"
)

// region is a member's region in the matrix, and its distance from the second nearest of the others, which makes a
// majority of five: a round trip in ms, as internal/transport/netspec has it.
type region struct {
	name   string
	quorum float64
}

var matrix = []region{{"us-east-1", 70}, {"us-west-2", 98}, {"eu-west-1", 118}, {"ap-northeast-1", 149},
	{"sa-east-1", 175}}

const (
	seriesAccepted  = "lcr, accepted"
	seriesConfirmed = "lcr, confirmed"
	// regionClients are those of all regions, regionShare is the share of their writes that is blind.
	regionClients = 100
	regionShare   = 0.5
)

// ledFrom is the part with the leader in a region.
func ledFrom(r *region) string { return "region of the clients, leader in " + r.name }

func lcrRegions() *Experiment {
	var names []string
	for i := range matrix {
		names = append(names, matrix[i].name)
	}
	net := "regions=" + strings.Join(names, "+")
	e := &Experiment{
		Title: "Latency by region", Source: "of braid's own, on LCR",
		Text: []string{
			"Five members, one in each of five regions of a cloud, with the round trips that come with the program (--net " +
				net + "), and 20 clients in closed loops at each of them, all at once. Half of the commands are blind. Batches " +
				"are braid's own, so latency is distance and not a queue.",
			"With raft a command takes the way to the leader, from there to the second nearest of the others, and back: a " +
				"round trip to the leader, and one from the leader to its majority. A blind command in mode accepted takes a " +
				"round trip from its own member to a majority. In mode confirmed it also waits for the leader's word, which " +
				"takes what raft takes: it ties at best.",
		},
		XName: ledFrom(&matrix[0]), Rounds: 3, QuickRounds: 1,
		Table: []Metric{BlindP50, PlainP50, BlindMean, PlainMean},
	}
	for lead := range matrix {
		part := ledFrom(&matrix[lead])
		for _, series := range []string{seriesRaft, seriesAccepted, seriesConfirmed} {
			for i := range matrix {
				c := Case{Series: series, Part: part, X: float64(i + 1), Setup: lcrBatched(seriesRaft, len(matrix)), Full: lead > 0}
				c.Work = Work{For: time.Second, Clients: regionClients, Payload: lcrBytes, At: AtMembers, Blind: regionShare,
					Net: net, Leader: lead + 1, Of: i + 1}
				if series != seriesRaft {
					c.Setup, c.Work.Confirmed = lcrBatched(seriesLCR, len(matrix)), series == seriesConfirmed
				}
				e.Cases = append(e.Cases, c)
			}
		}
	}
	for _, y := range []Metric{BlindP50, PlainP50} {
		e.Plots = append(e.Plots, Plot{
			Kind: Points, Title: y.label() + ", leader in " + matrix[0].name, XLabel: "region of the clients",
			Names: names, Y: y, Caption: "Lower is better. Whiskers are the middle half of the runs.",
		})
	}
	e.Claims = regionClaims()
	return e
}

func regionClaims() []Claim {
	part := ledFrom(&matrix[0])
	var xs []float64
	for i := range matrix {
		xs = append(xs, float64(i+1))
	}
	return []Claim{
		{
			Text: "a blind command is accepted within 1.1 round trips to a majority, in every region", Unit: "round trips",
			Measure: func(r *Result) (float64, bool) {
				most := 0.0
				for i := range matrix {
					v, ok := figure(BlindP50, where{seriesAccepted, xs[i], part})(r)
					if !ok {
						return 0, false
					}
					most = max(most, v/matrix[i].quorum)
				}
				return most, true
			},
			Holds: atMost(1.1), Note: "Medians, in the region where it is most. A majority is the member itself and the " +
				"two nearest others.",
		},
		{
			Text: "far from the leader blind commands are at least 25 % quicker than with raft", Unit: "%",
			Measure: lessThan(BlindP50, seriesAccepted, seriesRaft, part, 4), Holds: atLeast(25),
			Note: "Medians in ap-northeast-1, leader in us-east-1: by the distances 149 ms in place of 219, 32 %.",
		},
		{
			Text: "with answers when applied lcr ties with raft", Unit: "×",
			Measure: worst(BlindP50, seriesConfirmed, seriesRaft, part, xs...), Holds: atMost(1.1),
			Note: "Median of blind commands in mode confirmed over raft's, in the region where it is most. It " +
				"cannot be quicker.",
		},
		{
			Text: "transactional commands take no longer than with raft", Unit: "×",
			Measure: worst(PlainP50, seriesAccepted, seriesRaft, part, xs...), Holds: atMost(1.1),
			Note: "Medians, in the region where it is most.",
		},
	}
}

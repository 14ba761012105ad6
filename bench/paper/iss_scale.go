package paper

import (
	"fmt"
	"slices"
	"time"
)

const (
	// scaleDepth is the maximal number of messages in progress to a member without batching. An adaptive depth needs
	// batching: it expects that waiting commands go into the next message.
	scaleDepth = 64
	// scaleCores is about the number of cores for a member on a server of the thesis: its 16 threads are of 8 cores.
	scaleCores = 8
	scaleTime  = 3 * time.Second // at most, of a modelled cluster's own time
	scaleLow   = 100 * time.Millisecond
	// scaleAway is the latency of links in the count of round trips.
	scaleAway  = 20 * time.Millisecond
	scaleAlone = 20.0 // commands/s there
	modelHot   = 25.0 // % of commands on one key, with conflicts
)

// Parts of the experiment.
const (
	byScale        = "members with 8 cores each, a command a message"
	byScaleBatches = "members with 8 cores each, with batches"
	byScaleShared  = "members, all on this machine, a command a message"
	byScaleLow     = "members, 5,400 commands/s, a command a message"
	byScaleTrips   = "members, 20 ms apart, a command at a time"
)

var (
	scaleProtocols = []string{seriesISS, seriesEPaxos, seriesWPaxos, seriesMultiPaxos, seriesRaft}
	// scaleMembers are the sizes of the thesis, and of its future work.
	scaleMembers = []float64{3, 4, 6, 8, 16, 32, 64, 128}
	costMembers  = []float64{3, 5, 6}
	// mostMembers is the largest computed size for each protocol. Wpaxos has at most 64 groups, and each member needs
	// one.
	mostMembers = map[string]float64{seriesISS: 128, seriesEPaxos: 128, seriesWPaxos: 64, seriesMultiPaxos: 128,
		seriesRaft: 128}
)

// underWay is the maximal number of commands in progress: the thesis's clients, and fewer if one leader serves many
// members. There a command would take longer than the time after which members forward it again.
func underWay(protocol string, members int) int {
	if protocol == seriesRaft || protocol == seriesMultiPaxos {
		return min(thesisClients, 8*thesisClients/members)
	}
	return thesisClients
}

// groupsOf is the number of groups of keys of wpaxos: one for each member, if that many are possible.
func groupsOf(members int) int { return min(64, max(keyGroups, members)) }

// variant is a protocol with particular settings.
type variant struct {
	series  string
	setup   func(members int) Setup
	hot     float64
	members []float64
}

// scaleSetup is a cluster without batching.
func scaleSetup(protocol string, members int) Setup {
	s := issSetup(protocol, members)
	s.NoBatching, s.Depth = true, scaleDepth
	if protocol == seriesWPaxos {
		s.set(fmt.Sprint("instances=", groupsOf(members)))
	}
	return s
}

// rowsOf is the number of rows of a grid of this many members: about that of columns.
func rowsOf(members int) int {
	rows := 1
	for (rows+1)*(rows+1) <= members {
		rows++
	}
	return rows
}

// scaleVariants are all protocols, and their variants.
func scaleVariants() (all []variant) {
	for _, p := range scaleProtocols {
		all = append(all, variant{series: p, members: scaleMembers[:slices.Index(scaleMembers, mostMembers[p])+1],
			setup: func(n int) Setup { return scaleSetup(p, n) }})
	}
	for _, instances := range []int{4, 8} {
		all = append(all, variant{series: fmt.Sprintf("%s, %d instances", seriesISS, instances),
			members: []float64{3, 6, 16}, setup: func(n int) Setup {
				s := scaleSetup(seriesISS, n)
				s.set(fmt.Sprint("instances=", instances))
				return s
			}})
	}
	large := []float64{8, 16, 32}
	for _, p := range []string{seriesISS, seriesMultiPaxos} {
		all = append(all,
			variant{series: p + ", relays", members: large, setup: func(n int) Setup {
				s := scaleSetup(p, n)
				s.set(fmt.Sprint("relays=", rowsOf(n)))
				return s
			}},
			variant{series: p + ", grid", members: large, setup: func(n int) Setup {
				s := scaleSetup(p, n)
				s.set(fmt.Sprint("quorums=grid:", rowsOf(n)))
				return s
			}})
	}
	return append(all,
		variant{series: seriesWPaxos + ", zones", members: large, setup: func(n int) Setup {
			s := scaleSetup(seriesWPaxos, n)
			s.set(fmt.Sprintf("quorums=zones:%d/0/1", n/rowsOf(n)))
			return s
		}},
		variant{series: fmt.Sprintf("%s, %g %% conflicts", seriesEPaxos, modelHot), members: scaleMembers[:6],
			hot: modelHot / 100, setup: func(n int) Setup {
				return scaleSetup(seriesEPaxos, n)
			}})
}

// scaleWork has as many commands as possible, at all members, with the keys of the other experiments.
func scaleWork(s *Setup, last time.Duration) Work {
	return Work{Rate: saturating, For: last, Inflight: underWay(s.Protocol, s.Members), At: AtMembers,
		Payload: defaultPayload, KeySpace: thesisKeys}
}

// scaleCases are computed, with separate cores for each member.
func scaleCases() (cases []Case) {
	for _, x := range scaleMembers { // slow ones come last
		for _, v := range scaleVariants() {
			if !slices.Contains(v.members, x) {
				continue
			}
			s := v.setup(int(x))
			w := scaleWork(&s, scaleTime)
			w.Hot = v.hot
			cases = append(cases, Case{Series: modelPrefix + v.series, Part: byScale, X: x, Setup: s.modelled(scaleCores),
				Work: w, Full: !inQuickScale(&v, int(x))})
		}
	}
	return cases
}

// batchedCases are the same with batching.
func batchedCases() (cases []Case) {
	for _, p := range scaleProtocols {
		for _, x := range []float64{3, 6, 16} {
			s := scaleSetup(p, int(x))
			s.NoBatching, s.Depth = false, 0
			w := scaleWork(&s, scaleTime)
			w.Inflight = batchedUnderWay
			cases = append(cases, Case{Series: modelPrefix + p, Part: byScaleBatches, X: x, Setup: s.modelled(scaleCores),
				Work: w, Full: x != 3})
		}
	}
	return cases
}

// batchedUnderWay is the number of commands in progress with batching.
const batchedUnderWay = 20_000

func inQuickScale(v *variant, members int) bool {
	return members == 16 || members <= 6 && v.hot == 0
}

// sharedCases are measured, and computed for comparison.
func sharedCases() (cases []Case) {
	for _, n := range issMembers {
		for _, p := range scaleProtocols {
			s := scaleSetup(p, n)
			cases = append(cases,
				Case{Series: p, Part: byScaleShared, X: float64(n), Setup: s, Work: scaleWork(&s, time.Second)},
				Case{Series: modelPrefix + p, Part: byScaleShared, X: float64(n), Setup: s.modelled(0),
					Work: scaleWork(&s, scaleTime)})
		}
	}
	return cases
}

// costCases are computed: the cost of a command at low load.
func costCases() (cases []Case) {
	for _, p := range scaleProtocols {
		for _, x := range costMembers {
			s := scaleSetup(p, int(x))
			w := scaleWork(&s, scaleLow)
			w.Rate = thesisLow
			cases = append(cases, Case{Series: modelPrefix + p, Part: byScaleLow, X: x, Setup: s.modelled(scaleCores),
				Work: w, Full: x != 3})
			s.Net, w.Rate, w.For = fmt.Sprintf("latency=%v", scaleAway), scaleAlone, 2*time.Second
			cases = append(cases, Case{Series: modelPrefix + p, Part: byScaleTrips, X: x, Setup: s.modelled(scaleCores),
				Work: w, Full: x != 3})
		}
	}
	return cases
}

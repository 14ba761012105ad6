package paper

import (
	"fmt"
	"slices"
	"time"
)

const (
	// scaleDepth is the largest number of messages in progress to a member without batching. An adaptive depth needs
	// batching: it expects that waiting commands go into the next message.
	scaleDepth = 64
	// scaleCores is about what a server of the thesis has for a member: its 16 threads are of 8 cores.
	scaleCores = 8
	scaleTime  = 3 * time.Second // at most, of a modelled cluster's own time
	scaleLow   = 100 * time.Millisecond
	// scaleAway is the latency of links where round trips are counted.
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
	// scaleMembers are those of the thesis, and what it leaves to future work.
	scaleMembers = []float64{3, 4, 6, 8, 16, 32, 64, 128}
	costMembers  = []float64{3, 5, 6}
	// mostMembers is how far the protocols are computed. Wpaxos has at most 64 groups, and each member is to have one.
	mostMembers = map[string]float64{seriesISS: 128, seriesEPaxos: 128, seriesWPaxos: 64, seriesMultiPaxos: 128,
		seriesRaft: 128}
)

// underWay is how many commands are in progress at most: the thesis's clients, and fewer where one leader has to do
// with many members. There a command would take longer than members wait before they pass it on again.
func underWay(protocol string, members int) int {
	if protocol == seriesRaft || protocol == seriesMultiPaxos {
		return min(thesisClients, 8*thesisClients/members)
	}
	return thesisClients
}

// groupsOf is how many groups of keys wpaxos has: one for each member, as far as there can be so many.
func groupsOf(members int) int { return min(64, max(keyGroups, members)) }

// variant is a protocol with settings of its own.
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

// rowsOf is how many rows a grid of this many members has: about as many as columns.
func rowsOf(members int) int {
	rows := 1
	for (rows+1)*(rows+1) <= members {
		rows++
	}
	return rows
}

// scaleVariants are all protocols, and what some of them have.
func scaleVariants() (all []variant) {
	for _, p := range scaleProtocols {
		all = append(all, variant{series: p, members: scaleMembers[:slices.Index(scaleMembers, mostMembers[p])+1],
			setup: func(n int) Setup { return scaleSetup(p, n) }})
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

// scaleWork is as many commands as can be, at all members, with the keys of the other experiments.
func scaleWork(s *Setup, last time.Duration) Work {
	return Work{Rate: saturating, For: last, Inflight: underWay(s.Protocol, s.Members), At: AtMembers,
		Payload: defaultPayload, KeySpace: thesisKeys}
}

// scaleCases are computed, with cores for each member.
func scaleCases() (cases []Case) {
	for _, x := range scaleMembers { // those that take long come last
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

// batchedUnderWay is how many commands are in progress where they are batched.
const batchedUnderWay = 20_000

func inQuickScale(v *variant, members int) bool {
	return members == 16 || members <= 6 && v.hot == 0
}

// sharedCases are measured, and computed alongside it.
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

// costCases are computed: what a command takes where few others come.
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

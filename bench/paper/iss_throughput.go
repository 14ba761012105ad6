package paper

import (
	"fmt"
	"slices"
	"time"
)

// The thesis's load directly into the log: as many clients as its six machines have, with a request each, and as many
// keys.
const (
	thesisClients = 6 * 256
	thesisKeys    = webKeys
	// throughputTime is the measured time of a run.
	throughputTime = 600 * time.Millisecond
)

var (
	throughputSeries = []string{seriesISS, seriesEPaxos, seriesWPaxos, seriesMultiPaxos, seriesRaft}
	// hotShares are shares of commands on one key, in percent.
	hotShares = []float64{0, 25, 50, 100}
	// lowRates are the loads that the thesis calls low, and a tenth of that.
	lowRates = []float64{540, thesisLow}
	// loopClients are the clients over HTTP, in closed loops.
	loopClients = []float64{64, 256}
)

// Parts of the experiment.
const (
	byWebMix       = "share of writes in %, 256 clients over HTTP, 3 members"
	byWebUnbatched = "clients over HTTP, 3 members, a command a message"
)

func byConflicts(members int, batched bool) string {
	if batched {
		return fmt.Sprintf("share of commands on one key in %%, %d members, with batches", members)
	}
	return fmt.Sprintf("share of commands on one key in %%, %d members, a command a message", members)
}

func byLowRate(members int) string {
	return fmt.Sprintf("commands/s, %d members, with batches", members)
}

func byLoopClients(members int) string { return fmt.Sprintf("clients over HTTP, %d members", members) }

// throughputSetup is a cluster of one of the contestants. Without batches the limit of messages in progress has no
// effect.
func throughputSetup(protocol string, members int, batched bool) Setup {
	s := issSetup(protocol, members)
	if !batched {
		s.NoBatching, s.Depth = true, thesisClients
	}
	if protocol == seriesWPaxos {
		s.set(fmt.Sprint("instances=", keyGroups))
	}
	return s
}

func issThroughput() *Experiment {
	e := &Experiment{
		Title: "Throughput and CPU of protocols with many leaders", Source: issPaper +
			", figures 23 and 26",
		Text: []string{
			issText,
			"One cluster runs at a time. The members share the cores, so what limits all of them is the CPU that a command " +
				"takes, of all members and the load together. Requests per second of CPU say that without the pauses of the " +
				"disk. The thesis's servers had 16 threads each, and there iss did more than twice as much as EPaxos and WPaxos.",
			"Straight into the log 1,536 clients, six times 256 as in the thesis, wait for their answers, alike many at each " +
				"member. A command has 16 bytes, of which eight are its key. Without batches an entry has one command, and a " +
				"message has one entry of those that it proposes (an acknowledgement may stand for many). As many messages may " +
				"be under way as there are clients. With batches, all that waits goes together.",
			"There are 12,000 keys in 16 groups. The clients of each member have groups of their own, which is the best that " +
				"there is for wpaxos: nothing is passed on. A share of the commands touches one key that all use. Contestants " +
				"get the same commands. To raft, multi-paxos and iss a key says nothing. To epaxos it says what depends on what, " +
				"and to wpaxos whose log it is; there only the order of each key, or group, has to be the same on all members. " +
				"Reads and writes do not differ in the log, and two reads of a key conflict as writes do.",
			"Latency at low load is measured as in iss-latency: commands come at a rate, to all members alike.",
			issWebText,
			"Over HTTP clients wait for their answers, one request each, as Paxi's do: writes, and in one part reads. The " +
				"bare server is the same HTTP server with the same clients, and answers at once without a log. What a protocol " +
				"does beside it is what is left when HTTP has taken its part of the cores. Groups of wpaxos are by hash there, " +
				"so two of three commands are passed on to an owner. Paxi itself is not measured beside it, as it cannot be " +
				"had as a Go module.",
		},
		XName: byConflicts(3, false), Alone: true, Rounds: 3, QuickRounds: 1,
		Table: []Metric{PerCPU, CPU, Throughput, P50, P99, EgressAll, SyncsAll},
	}
	e.Cases = slices.Concat(conflictCases(), lowCases(), loopCases())
	e.Plots = issThroughputPlots()
	e.Claims = issThroughputClaims()
	return e
}

// conflictCases are in the log, with clients in closed loops.
func conflictCases() (cases []Case) {
	for _, batched := range []bool{false, true} {
		for _, n := range issMembers {
			for _, hot := range hotShares {
				if hot > 0 && hot < 100 && (n > 3 || batched) {
					continue
				}
				for _, protocol := range throughputSeries {
					w := Work{For: throughputTime, Clients: thesisClients, At: AtMembers, Payload: defaultPayload,
						KeySpace: thesisKeys, Hot: hot / 100}
					quick := hot == 0 &&
						(n == 3 || protocol == seriesISS || !batched && slices.Contains(throughputSeries[:3], protocol))
					cases = append(cases, Case{Series: protocol, Part: byConflicts(n, batched), X: hot,
						Setup: throughputSetup(protocol, n, batched), Work: w, Full: !quick})
				}
			}
		}
	}
	return cases
}

// lowCases are in the log, at rates that clusters sustain.
func lowCases() (cases []Case) {
	for _, n := range issMembers {
		for _, rate := range lowRates {
			for _, protocol := range throughputSeries {
				w := Work{For: time.Second, Rate: rate, Inflight: issInflight, At: AtMembers, Payload: defaultPayload,
					KeySpace: thesisKeys}
				quick := rate == thesisLow && slices.Contains(throughputSeries[:2], protocol)
				cases = append(cases, Case{Series: protocol, Part: byLowRate(n), X: rate, Setup: throughputSetup(protocol, n, true),
					Work: w, Full: !quick})
			}
		}
	}
	return cases
}

// loopCases are over HTTP, with clients in closed loops.
func loopCases() (cases []Case) {
	add := func(part, series string, x float64, s Setup, w Work, quick bool) {
		s.HTTP, w.For, w.At, w.Payload = true, throughputTime, AtMembers, defaultPayload
		cases = append(cases, Case{Series: series, Part: part, X: x, Setup: s, Work: w, Full: !quick})
	}
	most := loopClients[len(loopClients)-1]
	for _, series := range append([]string{seriesBare}, throughputSeries...) {
		setup := func(members int, batched bool) Setup {
			if series == seriesBare {
				return Setup{Members: members, Bare: true}
			}
			return throughputSetup(series, members, batched)
		}
		for _, n := range issMembers {
			for _, c := range loopClients {
				add(byLoopClients(n), series, c, setup(n, true), Work{Clients: int(c), Writes: 1}, c == most &&
					(n == 3 || series == seriesBare || series == seriesISS))
			}
		}
		for _, percent := range []float64{0, 50} {
			add(byWebMix, series, percent, setup(3, true), Work{Clients: int(most), Writes: percent / 100}, false)
		}
		if series != seriesBare {
			add(byWebUnbatched, series, most, setup(3, false), Work{Clients: int(most), Writes: 1}, false)
		}
	}
	return cases
}

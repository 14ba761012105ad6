package paper

import (
	"fmt"
	"slices"
	"time"
)

const (
	byRun    = "members" // of whole runs
	bySecond = "seconds" // of their timelines
	// failureShare is the share of the clients with blind writes.
	failureShare = 0.5
	// takeover bounds the time until a new leader, twice the election timeout, and some time with it. Of four members
	// one is nearly always faster: shortTakeover.
	takeover, shortTakeover = 6 * time.Second, 4500 * time.Millisecond
)

func lcrFailures() *Experiment {
	e := &Experiment{
		Title: "When members die", Source: lcrPaper + ", figure 14",
		Text: []string{
			"Five members, each a process of its own on this machine, with real fsyncs and TCP over loopback; links between " +
				"members take 5 ms one way. 40 clients in closed loops are in the process that measures, a fifth of them at each " +
				"member, to which they speak over TCP. A member is killed as by a power failure (SIGKILL), so it hands nothing " +
				"over. Its clients go on at the next member that runs, and come home when it does.",
			"As in the paper there is no batching and 16 frames are under way to a follower, see lcr-tps. Half of the clients " +
				"write blindly and are answered when their commands are accepted; the others write transactions. In the other " +
				"experiments each client does both, but then after a moment all of them wait for a transaction, which needs a " +
				"leader. raft takes all commands alike. With multi-raft each client writes one key, so when a member dies only " +
				"the clients of its group wait.",
			fmt.Sprintf("The heartbeat is the paper's, 500 ms. A follower becomes a candidate after 2.5 to 5 s without a "+
				"leader; the paper's took about 6 s. How long that lasts is drawn anew in each run, by the smallest draw of four "+
				"members. Quick runs are shorter: killed after 1 s, back after 2.5 s, the leader is killed after %g s.",
				shortFaults.Lead.Seconds()),
			lcrMultiText,
		},
		XName: byRun, Rounds: 3, QuickRounds: 1,
		Table: []Metric{Throughput, OneDown, NewLeader, OneDownPause, PlainPause, BlindPause, PlainP50, BlindP50},
	}
	e.Cases = failureCases()
	for _, y := range []Metric{Throughput, BlindRate, PlainRate} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: y.label() + " over time", Part: bySecond, XLabel: bySecond, Y: y,
			Caption: "Higher is better. Each point is a window; whiskers are the middle half of the runs.",
		})
	}
	e.Claims = failureClaims()
	return e
}

var (
	longFaults = Faults{Down: 10 * time.Second, Back: 16 * time.Second, Lead: 25 * time.Second,
		Every: 500 * time.Millisecond, Part: bySecond}
	shortFaults = Faults{Down: time.Second, Back: 2500 * time.Millisecond, Lead: 4 * time.Second,
		Every: 250 * time.Millisecond, Part: bySecond}
)

func failureCases() (cases []Case) {
	for _, f := range []*Faults{&longFaults, &shortFaults} {
		w := mixed(clientsLatency, failureShare)
		w.Apart, w.Faults, w.For = true, f, f.Lead+takeover
		if f == &shortFaults {
			w.For = f.Lead + shortTakeover
		}
		all := contest(byRun, 5, lcrProcesses, 5, w, f == &shortFaults)
		onlyLCR(all)[0].Series = seriesLCR
		for i := range all {
			all[i].Quick = !all[i].Full
		}
		all[1], all[2] = all[2], all[1] // if the time does not suffice, multi-raft is omitted
		cases = slices.Concat(cases, all)
	}
	return cases
}

func failureClaims() []Claim {
	raft, lcr := where{seriesRaft, 5, byRun}, where{seriesLCR, 5, byRun}
	return []Claim{
		{
			Text: "a dead follower costs lcr at most 15 % of its throughput", Paper: 1600. / 1700, Unit: "×",
			Measure: overOther(OneDown, lcr, Throughput, lcr), Holds: atLeast(0.85),
			Note: "Throughput while the follower is dead, over that before.",
		},
		{
			Text: "accepted commands hardly pause when the leader dies", Unit: "ms",
			Measure: figure(BlindPause, lcr), Holds: atMost(100),
			Note: "The longest time without an answer to any blind command after the leader was killed. No leader is needed " +
				"to accept them. In the paper all wait for the election.",
		},
		{
			Text: "transactions pause no longer than with raft", Unit: "×",
			Measure: times(PlainPause, lcr, raft), Holds: atMost(1.5),
			Note: "The same of transactions, over raft's. Election timeouts are random, so single runs differ " +
				"by a factor of two.",
		},
		{
			Text: "under a new leader lcr does at least 0.85 of what it did", Unit: "×",
			Measure: overOther(NewLeader, lcr, Throughput, lcr), Holds: atLeast(0.85),
			Note: "Throughput of four members with a new leader, over that of five before.",
		},
		{
			Text: "before anything dies lcr does more than raft", Paper: 1700. / 1200, Unit: "×",
			Measure: times(Throughput, lcr, raft), Holds: func(v float64) bool {
				return v > 1
			}, Note: "Half of the clients are blind. These wait one round trip, so more than half of the answers are theirs.",
		},
	}
}

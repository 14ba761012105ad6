package paper

import (
	"fmt"
	"time"
)

// issFailureRate is the offered rate, in commands/s, which two cores sustain with all members in separate processes.
const issFailureRate = 1000.0

func byMembersKilled(members int) string { return fmt.Sprintf("members, %d", members) }

func secondsOf(members int) string { return fmt.Sprintf("seconds, %d members", members) }

func issFailures() *Experiment {
	e := &Experiment{
		Title: "A leader dies under load", Source: issPaper + ", section 6.1 (future work)",
		Text: []string{
			"Each member is a process of its own on this machine, with real fsyncs and TCP over loopback; all of them share " +
				"its cores and its disk. Commands come at a rate from the process that measures, to all members alike, and it " +
				"speaks with members over TCP. The leader is killed as by a power failure (SIGKILL) and comes back with its " +
				"disk; what its clients bring meanwhile goes to the next member that runs. With iss all members lead: the one " +
				"that is killed is the one that etcd's API would name.",
			issForwarded,
			fmt.Sprintf("The election timeout is the same for all, %v. With raft and multi-paxos a follower stands after one "+
				"to two of them without a leader, the first one wins, and nothing is answered until then. With iss the others "+
				"see in the same time that a leader is silent, and have the rest of its slots decided without it; nothing after "+
				"these slots is answered before. Afterwards it is banned for some epochs, and what its clients bring is "+
				"forwarded until it leads again.", electionTimeout),
			"What the dead member had taken and not answered has no outcome that its clients know. Those commands count as " +
				"failed, and as what was refused. The thesis leaves failures to future work.",
			fmt.Sprintf("Quick runs are shorter: the leader is killed after %v and comes back after %v.", shortLoss.Lead,
				shortLoss.Return),
		},
		XName: byMembersKilled(3), Rounds: 3, QuickRounds: 1,
		Table: []Metric{LeaderPause, BackPause, Throughput, NewLeader, P50, P99, Failed},
	}
	for _, n := range issMembers {
		e.Cases = append(e.Cases, lossCases(n)...)
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: fmt.Sprintf("Answers over time, %d members", n), Part: secondsOf(n), XLabel: "seconds",
			Y:       Throughput,
			Caption: "Higher is better. Each point is a window; whiskers are the middle half of the runs.",
		})
	}
	for _, n := range issMembers {
		e.Claims = append(e.Claims, lossClaims(n)...)
	}
	return e
}

var (
	longLoss  = Faults{Lead: 5 * time.Second, Return: 10 * time.Second, Every: 250 * time.Millisecond}
	shortLoss = Faults{Lead: time.Second, Return: 4500 * time.Millisecond, Every: 250 * time.Millisecond}
)

func lossCases(members int) (cases []Case) {
	for _, f := range []Faults{longLoss, shortLoss} {
		f.Part = secondsOf(members)
		w := Work{For: f.Return + 4*time.Second, Rate: issFailureRate, At: AtMembers, Faults: &f}
		quick := f.Lead == shortLoss.Lead
		if quick {
			w.For = f.Return + time.Second
		}
		for _, protocol := range []string{seriesRaft, seriesMultiPaxos, seriesISS} {
			s := issSetup(protocol, members)
			s.Processes = true
			cases = append(cases, Case{Series: protocol, Part: byMembersKilled(members), X: float64(members), Setup: s, Work: w,
				Quick: quick, Full: !quick})
		}
	}
	return cases
}

func lossClaims(members int) []Claim {
	at := func(series string) where { return where{series, float64(members), byMembersKilled(members)} }
	of := fmt.Sprintf(", %d members", members)
	return []Claim{
		{
			Text: "when a leader dies, answers pause no longer than two elections of raft" + of, Unit: "× raft",
			Measure: times(LeaderPause, at(seriesISS), at(seriesRaft)), Holds: atMost(2),
			Note: "The longest time without any answer after the kill, over raft's in the same run. How long members wait is " +
				"drawn between one and two election timeouts, so single runs differ by a factor of two.",
		},
		{
			Text: "multi-paxos does not either" + of, Unit: "× raft",
			Measure: times(LeaderPause, at(seriesMultiPaxos), at(seriesRaft)), Holds: atMost(2), Note: "The same.",
		},
		{
			Text: "without it iss keeps up with what comes" + of, Unit: "of what comes",
			Measure: scaled(figure(NewLeader, at(seriesISS)), 1/issFailureRate), Holds: atLeast(0.95),
			Note: "Answers a second from the end of the pause until the leader comes back. It is more than 1 where what " +
				"waited is answered then.",
		},
		{
			Text: "when it comes back answers hardly pause" + of, Unit: "ms",
			Measure: figure(BackPause, at(seriesISS)), Holds: atMost(float64(electionTimeout.Milliseconds())),
			Note: "The longest time without any answer from its start on; at most an election timeout.",
		},
	}
}

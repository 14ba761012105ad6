package paper

import (
	"fmt"
	"time"
)

// issSegments are the lengths of segments that the thesis compares, in slots, and issWaits the time for which a
// leader waits for commands.
var (
	issSegments = []int{32, 64, 128}
	issWaits    = []time.Duration{0, 30 * time.Millisecond}
	// skipRates are the rates offered to all of them.
	skipRates = issRates[:3]
)

// issFixed is a cluster whose segments all have the same length.
func issFixed(members, slots int, wait time.Duration) Setup {
	s := issSetup(seriesISS, members)
	s.set(fmt.Sprintf("epochs=slots %d-%d, shares equal, policy combined, bans 8-256", slots, slots))
	if wait > 0 {
		s.set(fmt.Sprint("skip-wait=", wait))
	}
	return s
}

// seriesFixed names the series of such a cluster.
func seriesFixed(slots int, wait time.Duration) string {
	if wait == 0 {
		return fmt.Sprintf("iss, %d slots", slots)
	}
	return fmt.Sprintf("iss, %d slots, %d ms", slots, wait.Milliseconds())
}

func votes(series string) string { return series + ", votes" }

func issSkip() *Experiment {
	e := &Experiment{
		Title: "Skips of unused slots, and votes for empty values", Source: issPaper + ", figures 29 to 31",
		Text: []string{
			issText, issRateText,
			"The log has no gaps, so a leader without commands has to give its slots up, for those of others to be handed " +
				"over. It skips them in one message, without votes and without a disk. With votes it proposes empty values, " +
				"which others accept as they do commands. The thesis first had votes and then skips. Where a leader waits, it " +
				"does so for 30 ms before it gives slots up.",
			"A segment is the slots of one leader in an epoch. braid's own are not fixed: 64 to 1,024 slots as the load is, " +
				"and fewer for a leader that needs few. That is the series without a length.",
			"In the thesis a value is one command. Here it is all commands that have come together, so a segment lasts " +
				"longer, and a leader that is asked has seldom more than one value to wait for. And a command never waits for " +
				"its bucket to come to the member where it is.",
		},
		XName: byRateOf(6), Rounds: 3, QuickRounds: 1,
		Table: []Metric{P50, P99, Throughput, CPU, EgressAll, SyncsAll},
	}
	e.Cases = skipCases()
	for _, y := range []Metric{P50, P99, Throughput} {
		e.Plots = append(e.Plots, Plot{
			Kind: Lines, Title: y.label() + ", 6 members", XLabel: "commands/s offered", Y: y, LogX: true, LogY: true,
			Caption: "Whiskers are the middle half of the runs.",
		})
	}
	e.Plots[0].Paper = []Curve{ // section 5.5, 64 slots
		{"thesis: 64 slots", seriesFixed(64, 0), []float64{thesisLow}, []float64{50}},
		{"thesis: 64 slots, votes", votes(seriesFixed(64, 0)), []float64{thesisLow}, []float64{100}},
	}
	e.Claims = skipClaims()
	return e
}

func skipCases() (cases []Case) {
	add := func(series string, s Setup, quick bool) {
		for _, rate := range skipRates {
			w := Work{For: time.Second, Rate: rate, Inflight: issInflight, At: AtMembers}
			c := Case{Series: series, X: rate, Setup: s, Work: w, Full: !quick || rate == skipRates[0]}
			cases = append(cases, c)
			c.Series = votes(series)
			c.Setup.set("no-skip=true")
			cases = append(cases, c)
		}
	}
	add(seriesISS, issSetup(seriesISS, 6), true)
	for _, slots := range issSegments {
		for _, wait := range issWaits {
			add(seriesFixed(slots, wait), issFixed(6, slots, wait), slots == 64)
		}
	}
	return cases
}

// fixedCases are the thesis's settings with skips, next to the other series of iss-latency.
func fixedCases() (cases []Case) {
	for _, n := range issMembers {
		for _, slots := range issSegments {
			for _, wait := range issWaits {
				for _, rate := range skipRates {
					w := Work{For: time.Second, Rate: rate, Inflight: issInflight, At: AtMembers}
					cases = append(cases, Case{
						Series: seriesFixed(slots, wait), Part: byRateOf(n), X: rate, Setup: issFixed(n, slots, wait), Work: w,
						Full: slots != 32 || wait > 0 || n != 3 || rate != thesisLow,
					})
				}
			}
		}
	}
	return cases
}

func skipClaims() []Claim {
	at := func(series string) where { return where{series: series, x: thesisLow} }
	some, waiting := seriesFixed(64, 0), seriesFixed(64, issWaits[1])
	var fixed []where
	for _, slots := range issSegments {
		for _, wait := range issWaits {
			fixed = append(fixed, at(seriesFixed(slots, wait)))
		}
	}
	return []Claim{
		{
			Text: "with skips the median is lower", Paper: 0.5, Unit: "×",
			Measure: times(P50, at(some), at(votes(some))), Holds: func(v float64) bool { return v < 1 },
			Note: "With skips over with votes: 64 slots, no waiting, 5,400 commands/s. In the thesis about 50 ms instead of " +
				"100. Here every leader has commands of its own at that rate, as clients are at all members, so there is less to " +
				"skip.",
		},
		{
			Text: "and so is the 99th percentile", Paper: 0.5, Unit: "×",
			Measure: times(P99, at(some), at(votes(some))), Holds: func(v float64) bool {
				return v < 1
			}, Note: "The same. The thesis says about half.",
		},
		{
			Text: "with skips an idle leader costs less", Unit: "×",
			Measure: times(CPU, at(some), at(votes(some))), Holds: atMost(1), Note: "CPU for a command at 5,400 commands/s, " +
				"all members and the load, with skips over with votes. The thesis gives no figure.",
		},
		{
			Text: "where leaders wait, skips change little", Unit: "×",
			Measure: apart(P50, waiting, votes(waiting), "", thesisLow), Holds: atMost(1.25),
			Note: "Medians with 64 slots and 30 ms, by how much they are apart, up or down. The thesis says that " +
				"they hardly change.",
		},
		{
			Text: "skips change little in throughput", Unit: "×",
			Measure: apart(Throughput, some, votes(some), "", skipRates[2]), Holds: atMost(1.1),
			Note: "At 54,000 commands/s, 64 slots, by how much they are apart. The thesis says so of what saturates it.",
		},
		{
			Text: "segments that fit themselves to the load are as good as the best fixed ones", Unit: "×",
			Measure: againstBest(P50, at(seriesISS), fixed...), Holds: atMost(1.1),
			Note: "The median at 5,400 commands/s over the best of 32, 64 and 128 slots with 0 and 30 ms.",
		},
	}
}

package paper

import "math"

func fitClaims(phases int) []Claim {
	fixed := fixedProfiles
	return []Claim{
		{
			Text: "a change of the profile with each phase would gain over the best profile that stays", Unit: "×",
			Measure: func(r *Result) (float64, bool) {
				bound, ok := r.mean(phases, r.best(Throughput, fixed))
				_, single, also := r.bestDay(Throughput, fixed, phases)
				return bound / single, ok && also
			},
			Holds: atLeast(1.5),
			Note: "The throughput of the best profile of each phase, over that of the profile that is best over the " +
				"whole day. Means of the phases, geometric ones, so that each phase counts alike.",
		},
		historyClaim(),
	}
}

// historyClaim is of both days.
func historyClaim() Claim {
	return Claim{
		Text: "no command is lost, doubled or out of order", Unit: "commands",
		Measure: func(r *Result) (sum float64, ok bool) {
			for i := range r.Series {
				v, has := figure(Wrong, where{r.Series[i].Name, 1, byDay})(r)
				sum, ok = sum+v, ok || has
			}
			return sum, ok
		},
		Holds: atMost(0), Note: "Of all contestants.",
	}
}

// otherClaims are about the log that fits itself on the other day.
func otherClaims(phases int) []Claim {
	stays := []string{seriesRaft}
	return []Claim{
		{
			Text: "no phase has less than 0.9 of the throughput of raft that stays as it was", Unit: "×",
			Measure: leastShare(FromBegin, phases, stays), Holds: atLeast(0.9),
			Note: "In the phase where it is least, from its begin on, so with the time of changes and of those that were " +
				"taken back.",
		},
		changesClaim(phases),
	}
}

func changesClaim(phases int) Claim {
	return Claim{
		Text: "it changes at most twice in a phase", Unit: "changes",
		Measure: mostChanges(phases), Holds: atMost(2),
		Note: "Of the profile, or of the member that leads, in the phase with the most.",
	}
}

// fittedClaims are those about the log that fits itself.
func fittedClaims(phases int) []Claim {
	fixed := fixedProfiles
	return []Claim{
		{
			Text: "it has at least 0.9 of the throughput of the best fixed profile in each phase", Unit: "×",
			Measure: leastShare(Throughput, phases, fixed), Holds: atLeast(0.9),
			Note: "In the phase where it is least, from 15 s after the begin of a phase on (quick: 8 s).",
		},
		{
			Text: "over the whole day it does 1.5 times as much as the best profile that stays", Unit: "×",
			Measure: func(r *Result) (float64, bool) {
				fit, ok := r.mean(phases, r.own(FromBegin, seriesFit))
				_, single, also := r.bestDay(FromBegin, fixed, phases)
				return fit / single, ok && also
			},
			Holds: atLeast(1.5),
			Note: "Throughput from the begin of each phase on, with the time until it has changed. Geometric means of the " +
				"phases, so that each counts alike.",
		},
		{
			Text: "it answers as many commands", Unit: "×",
			Measure: func(r *Result) (float64, bool) {
				most := 0.0
				for _, name := range fixed {
					v, _ := figure(Throughput, where{name, 1, byDay})(r)
					most = max(most, v)
				}
				fit, ok := figure(Throughput, where{seriesFit, 1, byDay})(r)
				return fit / most, ok && most > 0
			},
			Holds: atLeast(1),
			Note: "All commands of the day, over those of the fixed profile that answers most. A phase with many small ones " +
				"counts more here than one with few large ones.",
		},
		changesClaim(phases),
	}
}

// ofPhase is a figure of a phase, 1 …; false: it was not measured.
type ofPhase func(phase int) (float64, bool)

// own is the figure of one contestant.
func (r *Result) own(m Metric, series string) ofPhase {
	return func(phase int) (float64, bool) { return figure(m, where{series: series, x: float64(phase)})(r) }
}

// best is the figure of the best of some contestants in each phase.
func (r *Result) best(m Metric, some []string) ofPhase {
	return func(phase int) (top float64, ok bool) {
		for _, name := range some {
			if v, has := r.own(m, name)(phase); has {
				top, ok = max(top, v), true
			}
		}
		return top, ok
	}
}

// mean is the geometric mean of all phases; false: some phase was not measured.
func (r *Result) mean(phases int, of ofPhase) (float64, bool) {
	sum := 0.0
	for i := range phases {
		v, ok := of(i + 1)
		if !ok {
			return 0, false
		}
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(phases)), true
}

// bestDay is the contestant with the best mean of all phases.
func (r *Result) bestDay(m Metric, some []string, phases int) (name string, top float64, ok bool) {
	for _, s := range some {
		if v, has := r.mean(phases, r.own(m, s)); has && (v > top || !ok) {
			name, top, ok = s, v, true
		}
	}
	return name, top, ok && top > 0
}

// leastShare is a figure of the log that fits itself over that of the best of some others, in the phase where it
// is least.
func leastShare(m Metric, phases int, others []string) measure {
	return func(r *Result) (float64, bool) {
		low := math.Inf(1)
		for i := range phases {
			v, ok := r.own(m, seriesFit)(i + 1)
			bound, also := r.best(m, others)(i + 1)
			if !ok || !also || bound == 0 {
				return 0, false
			}
			low = min(low, v/bound)
		}
		return low, phases > 0
	}
}

// mostChanges is how often it changed in the phase with the most changes, in any run.
func mostChanges(phases int) measure {
	return func(r *Result) (most float64, ok bool) {
		for i := range phases {
			p := r.at(where{series: seriesFit, x: float64(i + 1)})
			if p == nil {
				return 0, false
			}
			most = max(most, p.Figures[Changes].Max)
		}
		return most, phases > 0
	}
}

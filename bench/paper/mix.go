package paper

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// Place says where clients propose.
type Place string

const (
	// AtLeader is at the leader, or where all members lead some instances at each of them.
	AtLeader Place = ""
	// AtMembers is at all members alike, AtFollowers at all but the leader.
	AtMembers   Place = "members"
	AtFollowers Place = "followers"
)

// mix decides which of a client's commands are blind.
type mix struct {
	random *rand.Rand
	share  float64
	blind  braid.ProposeOptions
	keys   []uint64 // that all of its commands touch; none: each has one of its own
}

// mix is that of a client with a number: the same in every run.
func (w *Work) mix(client int) mix {
	m := mix{random: rand.New(rand.NewPCG(2, uint64(client))), share: w.Blind, blind: braid.ProposeOptions{Blind: true, Mode: braid.ModeAccepted}}
	if w.Confirmed {
		m.blind.Mode = braid.ModeConfirmed
	}
	if w.Apart { // every so many clients are blind, and the others are not
		before := int(w.Blind * float64(client))
		m.share = float64(int(w.Blind*float64(client+1)) - before)
		m.keys = []uint64{bench.KeyOf(uint64(client))}
		m.blind.Keys = m.keys
	}
	return m
}

// next are the options of the next command.
func (m *mix) next() braid.ProposeOptions {
	if m.share > 0 && m.random.Float64() < m.share {
		return m.blind
	}
	return braid.ProposeOptions{Keys: m.keys}
}

// addAnswers adds how long requests took, blind ones and others apart.
func (s Sample) addAnswers(done []answered, w *Work) {
	s.addLatencies(latenciesOf(done, func(a *answered) bool { return w.Of == 0 || a.member == w.Of-1 }))
	for _, c := range []struct {
		blind     bool
		p50, mean Metric
	}{{false, PlainP50, PlainMean}, {true, BlindP50, BlindMean}} {
		took := latenciesOf(done, func(a *answered) bool { return a.blind == c.blind && (w.Of == 0 || a.member == w.Of-1) })
		if len(took) == 0 || w.Blind == 0 {
			continue
		}
		s[c.p50], s[c.mean] = ms(quantile(took, 0.5)), ms(mean(took))
	}
}

// latenciesOf are how long those took that are wanted, ascending.
func latenciesOf(done []answered, want func(*answered) bool) (took []time.Duration) {
	for i := range done {
		if want(&done[i]) {
			took = append(took, done[i].took)
		}
	}
	slices.Sort(took)
	return took
}

// all are how long all of them took, ascending.
func all(done []answered) []time.Duration {
	return latenciesOf(done, func(*answered) bool { return true })
}

func mean(v []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range v {
		sum += d
	}
	return sum / time.Duration(max(1, len(v)))
}

package paper

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// Place is where clients propose.
type Place string

const (
	// AtLeader is at the leader, or at all members if each leads some instances.
	AtLeader Place = ""
	// AtMembers is at all members, AtFollowers at all but the leader.
	AtMembers   Place = "members"
	AtFollowers Place = "followers"
)

// mix selects the blind ones of a client's commands, and the keys that they touch.
type mix struct {
	random *rand.Rand
	share  float64
	blind  braid.ProposeOptions
	keys   []uint64 // shared by all its commands; none: each has a different one
	// Of work with keys: the number of keys in a group, the share of the hot one, and the groups of the client's member.
	perGroup int
	hot      float64
	groups   []uint64
}

// mix returns the mix of a client with a number: the same in every run. Clients are distributed over a given number
// of members.
func (w *Work) mix(client, members int) mix {
	m := mix{random: rand.New(rand.NewPCG(2, uint64(client))), share: w.Blind,
		blind: braid.ProposeOptions{Blind: true, Mode: braid.ModeAccepted}}
	if w.Confirmed {
		m.blind.Mode = braid.ModeConfirmed
	}
	if w.Apart { // every n-th client is blind, and the others are not
		before := int(w.Blind * float64(client))
		m.share = float64(int(w.Blind*float64(client+1)) - before)
		m.keys = []uint64{bench.KeyOf(uint64(client))}
		m.blind.Keys = m.keys
	}
	m.perGroup, m.hot = w.KeySpace/keyGroups, w.Hot
	for g := client % members; g < keyGroups && m.perGroup > 0; g += members {
		m.groups = append(m.groups, uint64(g))
	}
	return m
}

// Keys of work that has them: the hot one, followed by those of all groups round-robin. Groups belong to members
// round-robin.
const (
	keyGroups        = 16
	hotKey    uint64 = keyGroups
	ownKeys   uint64 = 2 * keyGroups
)

// next returns the options of the next command, into which its key is written if it has one.
func (m *mix) next(command []byte) braid.ProposeOptions {
	if m.perGroup > 0 {
		key := m.key()
		binary.LittleEndian.PutUint64(command[numberBytes:], key)
		return braid.ProposeOptions{Keys: []uint64{key}}
	}
	if m.share > 0 && m.random.Float64() < m.share {
		return m.blind
	}
	return braid.ProposeOptions{Keys: m.keys}
}

// key draws a key.
func (m *mix) key() uint64 {
	if m.random.Float64() < m.hot {
		return hotKey
	}
	return ownKeys + m.groups[m.random.IntN(len(m.groups))] + keyGroups*uint64(m.random.IntN(m.perGroup))
}

// addAnswers adds the latencies of requests, blind ones and others separately.
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

// latenciesOf returns the latencies of the wanted requests, ascending.
func latenciesOf(done []answered, want func(*answered) bool) (took []time.Duration) {
	for i := range done {
		if want(&done[i]) {
			took = append(took, done[i].took)
		}
	}
	slices.Sort(took)
	return took
}

// all returns the latencies of all of them, ascending.
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

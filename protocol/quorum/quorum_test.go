package quorum

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// The brute-force versions try every value and every outcome of the open votes.

func dumbAgreed(s Set, reached map[protocol.MemberID]uint64) uint64 {
	best := uint64(0)
	for _, v := range reached {
		if v > best && dumbHolds(s.Incoming, reached, v) && (len(s.Outgoing) == 0 || dumbHolds(s.Outgoing, reached, v)) {
			best = v
		}
	}
	return best
}

func dumbHolds(ids []protocol.MemberID, reached map[protocol.MemberID]uint64, v uint64) bool {
	n := 0
	for _, id := range ids {
		if reached[id] >= v {
			n++
		}
	}
	return 2*n > len(ids)
}

func dumbVote(s Set, answers map[protocol.MemberID]Answer) Result {
	win := func(missing Answer) bool {
		for _, half := range [][]protocol.MemberID{s.Incoming, s.Outgoing} {
			n := 0
			for _, id := range half {
				a := answers[id]
				if a == Granted || a == Missing && missing == Granted {
					n++
				}
			}
			if len(half) > 0 && 2*n <= len(half) {
				return false
			}
		}
		return true
	}
	switch {
	case win(Refused):
		return Won
	case !win(Granted):
		return Lost
	}
	return Open
}

func draw(rng *rand.Rand, atLeast int) []protocol.MemberID {
	ids := make([]protocol.MemberID, 20)
	for i := range ids {
		ids[i] = protocol.MemberID(i + 1)
	}
	rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = ids[:atLeast+rng.IntN(19-atLeast)]
	slices.Sort(ids)
	return ids
}

func TestAgainstTheDumbVersion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	results := map[Result]int{}
	for range 50_000 {
		s := Set{Incoming: draw(rng, 1)}
		if rng.IntN(2) == 0 {
			s.Outgoing = draw(rng, 1)
		}
		reached, answers := map[protocol.MemberID]uint64{}, map[protocol.MemberID]Answer{}
		bias := rng.IntN(4)
		for id := protocol.MemberID(1); id <= 20; id++ {
			reached[id] = uint64(rng.IntN(8))
			if answers[id] = Answer(rng.IntN(3)); rng.IntN(4) < bias {
				answers[id] = Granted
			}
		}
		require.Equal(t, dumbAgreed(s, reached), s.Agreed(func(id protocol.MemberID) uint64 { return reached[id] }),
			"%v %v", s, reached)
		want := dumbVote(s, answers)
		results[want]++
		require.Equal(t, want, s.Vote(func(id protocol.MemberID) Answer { return answers[id] }), "%v %v", s, answers)
	}
	for _, r := range []Result{Open, Won, Lost} {
		require.Greater(t, results[r], 1000, "the draw hardly ever gives %s", r)
	}
}

func TestNobodyDecidesNothing(t *testing.T) {
	var s Set
	require.Zero(t, s.Agreed(func(protocol.MemberID) uint64 { return 7 }))
	require.Equal(t, Lost, s.Vote(func(protocol.MemberID) Answer { return Granted }))
}

func TestSetOfConfig(t *testing.T) {
	c := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2, Learner: true}, {ID: 3}},
		Outgoing: []protocol.MemberID{3, 4}}
	s := Of(&c)
	require.Equal(t, []protocol.MemberID{1, 3}, s.Incoming)
	require.True(t, s.Has(1) && s.Has(4))
	require.False(t, s.Has(2))
}

func BenchmarkAgreed(b *testing.B) {
	s := Set{Incoming: []protocol.MemberID{1, 2, 3, 4, 5}}
	b.ReportAllocs()
	for b.Loop() {
		s.Agreed(func(id protocol.MemberID) uint64 { return uint64(id) * 7 % 5 })
	}
}

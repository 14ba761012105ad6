package order

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestPassIsAddAndNext: memberships and plans have the same places, with and without rounds.
func TestPassIsAddAndNext(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		merged := seed%2 == 0
		whole, passing := NewNiagara(Begin(1, merged)), NewNiagara(Begin(1, merged))
		var log []protocol.Entry
		for i := range 20 {
			var e protocol.Entry
			switch k := rng.IntN(10); {
			case k < 4:
				e = batch(0, uint32(1+rng.IntN(3)))
			case k < 6:
				e = protocol.Entry{Kind: protocol.EntryNoop}
			case k < 8:
				e = protocol.Entry{Kind: protocol.EntryConfig}
			case k == 8 && merged:
				e = protocol.NewSkip(protocol.Round(rng.IntN(30)))
			default:
				e = protocol.NewReshape(1 + rng.IntN(2)*rng.IntN(2)*rng.IntN(2))
			}
			e.Index, e.Term = protocol.Index(i+1), 1
			log = append(log, e)
		}
		var want, got []Placed
		for from := 0; from < len(log); {
			to := min(len(log), from+1+rng.IntN(4))
			whole.Add(1, log[from:to])
			want = notable(want, whole.Next(nil))
			var rest []protocol.Entry
			rest, got = passing.Pass(1, log[max(0, from-2):to], got)
			passing.Add(1, rest)
			got = notable(got, passing.Next(nil))
			require.NoError(t, passing.Check())
			require.Equal(t, whole.Cursor(), passing.Cursor())
			from = to
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// notable adds memberships and plans to out.
func notable(out, placed []Placed) []Placed {
	for _, p := range placed {
		if p.Plan != nil || p.Entry.Kind == protocol.EntryConfig {
			out = append(out, p)
		}
	}
	return out
}

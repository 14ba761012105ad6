package epaxos

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// A head decodes to the counts that were encoded, or is wide.
func TestHeadsOfCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	side, pairs, wides := 0, 0, 0
	for range 20_000 {
		counts := Vector{}
		for range 1 + rng.IntN(9) {
			most := []int{headColumns, MaxVoters}[rng.IntN(2)]
			counts = counts.with(ID{Column(1 + rng.IntN(most)), uint64(1 + rng.IntN(1<<rng.IntN(20)))})
		}
		columns := 0
		for _, n := range counts {
			if n > 0 {
				columns++
			}
		}
		h := headOf(counts)
		got, ok := h.counts()
		switch {
		case !ok:
			require.Greater(t, columns, headPairs)
			require.Greater(t, len(counts), headColumns)
			wides++
			continue
		case len(counts) <= headColumns:
			side++
		default:
			pairs++
		}
		require.True(t, got.Equal(counts), "%s, not %s", got, counts)
	}
	require.NotZero(t, side*pairs*wides, "%d, %d, %d", side, pairs, wides)
}

// The counts of a wide entry are read from its cell. Cells of entries that the log does not have are dropped.
func TestWideEntriesAreRead(t *testing.T) {
	var c Component
	for column := Column(1); column <= 20; column++ {
		c = append(c, ID{column, 1})
	}
	counts := countsOf(c)
	entry := func(index protocol.Index, counts Vector) protocol.Entry {
		return seal(NewEntry(ID{1, 1}, nil, nil), index, 1, counts)
	}
	reached := progress{step: 1, index: 1, executed: counts, any: counts}
	rec := protocol.Recovered{
		Entries: []protocol.Entry{entry(1, counts), entry(2, counts)},
		Cells: []protocol.Cell{
			{Number: wideCells + 1, Data: appendVector(nil, counts)},
			{Number: wideCells + 2, Data: appendVector(nil, counts)},
			{Number: progressCell, Data: reached.append(nil)},
		},
	}
	had, err := readDisk(&rec, "")
	require.NoError(t, err)
	require.Len(t, had.entries, 1)
	require.Equal(t, []uint64{wideCells + 2}, had.stale)
	e := rec.Entries[0]
	require.True(t, isWide(&e))
	require.True(t, had.wide.advance(nil, &e).Equal(counts))
	require.True(t, had.wide.advance(Vector{3}, &e).Covers(ID{1, 4}))
}

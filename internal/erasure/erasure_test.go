package erasure

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
	"github.com/stretchr/testify/require"
)

func random(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func cut(t testing.TB, body []byte, k uint8, rows ...uint8) (all []Row) {
	t.Helper()
	for _, r := range rows {
		b, err := Cut(body, k, r)
		require.NoError(t, err)
		require.Len(t, b, Len(len(body), k))
		all = append(all, Row{R: r, Bytes: b})
	}
	return all
}

// TestRowsDependOnNothingElse compares each row with the library's, for different numbers of rows.
func TestRowsDependOnNothingElse(t *testing.T) {
	for k := 1; k <= 8; k++ {
		body := random(uint64(k), 64*k)
		for _, n := range []int{k + 1, k + 2, k + 5, 15, 16, 17, 40, 127, 200, 255, 256} {
			library, err := reedsolomon.New(k, n-k)
			require.NoError(t, err)
			shards := make([][]byte, n)
			for i := range shards {
				shards[i] = make([]byte, 64)
				if i < k {
					copy(shards[i], body[64*i:])
				}
			}
			require.NoError(t, library.Encode(shards))
			for r := range n {
				got, err := Cut(body, uint8(k), uint8(r))
				require.NoError(t, err)
				require.Equal(t, shards[r], got, "k=%d n=%d row %d", k, n, r)
			}
		}
	}
}

// TestEveryCombination joins and derives rows from every set of k of n rows.
func TestEveryCombination(t *testing.T) {
	const n = 9
	all := make([]uint8, n)
	for i := range all {
		all[i] = uint8(i)
	}
	for k := uint8(1); k <= 5; k++ {
		for _, size := range []int{1, 2, 4, 7, 60, 61, 1000} {
			body := random(1, size)
			rows := cut(t, body, k, all...)
			for set := range uint(1 << n) {
				if bits.OnesCount(set) != int(k) {
					continue
				}
				var some []Row
				for i := n - 1; i >= 0; i-- { // the order does not matter
					if set>>i&1 == 1 {
						some = append(some, rows[i])
					}
				}
				got, err := Join(size, k, some)
				require.NoError(t, err)
				require.Equal(t, body, got, "k=%d size=%d rows %09b", k, size, set)
				r := uint8(set % n)
				derived, err := Derive(size, k, r, some)
				require.NoError(t, err)
				require.Equal(t, rows[r].Bytes, derived, "k=%d size=%d rows %09b row %d", k, size, set, r)
			}
		}
	}
}

func TestHighRowsAndManyPieces(t *testing.T) {
	for _, c := range []struct {
		k    uint8
		rows []uint8
	}{
		{2, []uint8{255, 15}}, {2, []uint8{16, 1}}, {3, []uint8{0, 100, 254}}, {3, []uint8{17, 18, 19}},
		{15, []uint8{0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{16, []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
	} {
		body := random(3, 12345)
		got, err := Join(len(body), c.k, cut(t, body, c.k, c.rows...))
		require.NoError(t, err)
		require.Equal(t, body, got)
		for _, r := range []uint8{0, 3, 15, 16, 200} {
			derived, err := Derive(len(body), c.k, r, cut(t, body, c.k, c.rows...))
			require.NoError(t, err)
			require.Equal(t, cut(t, body, c.k, r)[0].Bytes, derived)
		}
	}
}

func TestPiecesAreNotCopied(t *testing.T) {
	body := random(4, 10)
	rows := cut(t, body, 3, 0, 1, 2)
	require.Same(t, &body[0], &rows[0].Bytes[0])
	require.Same(t, &body[4], &rows[1].Bytes[0])
	require.Equal(t, append(append([]byte{}, body[8:]...), 0, 0), rows[2].Bytes)
	require.Same(t, &body[0], &cut(t, body, 1, 7)[0].Bytes[0])
	joined, err := Join(10, 3, rows)
	require.NoError(t, err)
	joined[0]++
	require.NotEqual(t, joined[0], body[0], "the joined body is a copy")
}

func TestExtraRowsAndNoBytes(t *testing.T) {
	body := random(5, 100)
	rows := cut(t, body, 3, 4, 4, 1, 2, 0, 5)
	got, err := Join(100, 3, rows)
	require.NoError(t, err)
	require.Equal(t, body, got)
	got, err = Join(0, 2, cut(t, nil, 2, 0, 5))
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = Derive(0, 2, 1, cut(t, nil, 2, 0, 5))
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestWrongRows(t *testing.T) {
	body := random(6, 100)
	var pieces *PiecesError
	var few *RowsError
	var length *LengthError
	_, err := Cut(body, 0, 1)
	require.ErrorAs(t, err, &pieces)
	for name, call := range map[string]func(rows []Row, k uint8) error{
		"join":   func(rows []Row, k uint8) error { _, err := Join(100, k, rows); return err },
		"derive": func(rows []Row, k uint8) error { _, err := Derive(100, k, 0, rows); return err },
	} {
		require.ErrorAs(t, call(nil, 0), &pieces, name)
		require.ErrorAs(t, call(cut(t, body, 3, 4, 4, 1), 3), &few, name)
		require.Equal(t, RowsError{Have: 2, Need: 3}, *few)
		require.EqualError(t, few, "erasure: 2 distinct rows, need 3")
		require.ErrorAs(t, call(nil, 1), &few, name)
		require.ErrorAs(t, call(append(cut(t, body, 3, 0, 1), Row{R: 7, Bytes: body[:33]}), 3), &length, name)
		require.Equal(t, LengthError{R: 7, Have: 33, Want: 34}, *length)
		require.EqualError(t, length, "erasure: row 7 has 33 bytes, want 34")
	}
	require.EqualError(t, pieces, "erasure: a body of 0 pieces")
}

// FuzzJoin cuts any bytes and joins them from any rows.
func FuzzJoin(f *testing.F) {
	f.Add([]byte("body"), uint8(3), uint64(7))
	f.Add([]byte{1}, uint8(9), uint64(1))
	f.Fuzz(func(t *testing.T, body []byte, k uint8, seed uint64) {
		k = max(k, 1)
		rng := rand.New(rand.NewPCG(seed, 0))
		var rows []Row
		for _, r := range rng.Perm(allRows)[:k] {
			rows = append(rows, cut(t, body, k, uint8(r))...)
		}
		got, err := Join(len(body), k, rows)
		require.NoError(t, err)
		require.Equal(t, string(body), string(got))
	})
}

func BenchmarkCut(b *testing.B) {
	body := random(7, 1<<20)
	for _, c := range []struct{ k, r uint8 }{{2, 2}, {3, 4}, {3, 6}, {3, 200}} {
		b.Run(fmt.Sprintf("k%d-row%d", c.k, c.r), func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				if _, err := Cut(body, c.k, c.r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	body := random(8, 1<<20)
	for _, c := range [][]uint8{{0, 1, 2}, {0, 2, 4}, {3, 4, 5}} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			rows := cut(b, body, 3, c...)
			b.SetBytes(1 << 20)
			for b.Loop() {
				if _, err := Join(len(body), 3, rows); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package quorum

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// survives is the brute-force version: members 0 … whole−1 hold the body whole, the next rows members a row each, the
// others nothing. An elected member has the entry only if every set of read members includes a holder; and any
// surviving read members must have the body whole or k rows of it.
func survives(n, read, k, whole, rows int) bool {
	for meet := range 1 << n {
		if bits.OnesCount(uint(meet)) != read {
			continue
		}
		w := bits.OnesCount(uint(meet) & (1<<whole - 1))
		r := bits.OnesCount(uint(meet) >> whole & (1<<rows - 1))
		if w+r == 0 || w == 0 && r < k {
			return false
		}
	}
	return true
}

// A majority that reads is a majority that writes: no other condition is needed to be
// elected with the entry, and the predicate is exact.
func TestDurableIsExact(t *testing.T) {
	cases, yes := 0, 0
	for n := 1; n <= 8; n++ {
		q := Size(n)
		for k := 1; k <= q; k++ {
			for whole := range n + 1 {
				for rows := range n - whole + 1 {
					want := whole+rows >= q && survives(n, q, k, whole, rows)
					require.Equal(t, want, Durable(n, q, q, k, whole, rows), "n=%d k=%d whole=%d rows=%d", n, k, whole, rows)
					cases++
					if want {
						yes++
					}
				}
			}
		}
	}
	require.Equal(t, 624, cases)
	require.Greater(t, yes, 100)
}

// The paper's numbers for five: F+k rows or F+1 whole copies, and the hazard of reducing a whole copy to a row
// (docs/internals/craft.md, 2.1).
func TestDurableOfFive(t *testing.T) {
	five := func(k, whole, rows int) bool { return Durable(5, 3, 3, k, whole, rows) }
	require.True(t, five(3, 1, 4))
	require.False(t, five(3, 1, 3))
	require.True(t, five(2, 1, 3))
	require.True(t, five(3, 3, 0))
	require.False(t, five(3, 2, 1))
	require.True(t, five(2, 0, 4))
	require.False(t, five(2, 2, 1))
}

// RS-Raft: with read + write ≥ n + k, writing is sufficient (docs/internals/craft.md, 2.7).
func TestDurableWithReadQuorums(t *testing.T) {
	for _, c := range []struct{ n, read, write, k int }{{5, 4, 4, 3}, {7, 5, 5, 3}} {
		for rows := range c.n {
			require.Equal(t, 1+rows >= c.write, Durable(c.n, c.read, c.write, c.k, 1, rows))
			if 1+rows >= c.write {
				require.True(t, survives(c.n, c.read, c.k, 1, rows))
			}
		}
	}
}

func TestSetDurable(t *testing.T) {
	forms := map[protocol.MemberID]protocol.Form{
		1: protocol.FormWhole, 2: protocol.RowForm(1), 3: protocol.RowForm(2), 4: protocol.RowForm(200),
		5: protocol.RowForm(2),
	}
	form := func(id protocol.MemberID) protocol.Form { return forms[id] }
	ids := func(ids ...protocol.MemberID) []protocol.MemberID { return ids }
	require.True(t, Set{Incoming: ids(1, 2, 3, 4, 6)}.Durable(2, 0, form))
	require.False(t, Set{Incoming: ids(1, 2, 3, 5, 6)}.Durable(2, 0, form), "two hold the same row")
	require.False(t, Set{Incoming: ids(1, 2, 3, 4, 6), Outgoing: ids(1, 2, 3)}.Durable(3, 0, form))
	require.False(t, Set{Incoming: ids(1, 2, 3, 4, 6), Outgoing: ids(1, 7, 8)}.Durable(2, 0, form))
	require.True(t, Set{Incoming: ids(1, 2, 3, 4, 6), Need: 4}.Durable(3, 4, form))
	require.False(t, Set{Incoming: ids(1, 2, 3, 6, 7), Need: 4}.Durable(3, 4, form))
	require.False(t, Set{}.Durable(1, 0, form))
	require.True(t, Set{Incoming: ids(1, 2, 7, 8)}.Kept(1, 0, form), "two of four are enough to keep it")
	require.False(t, Set{Incoming: ids(1, 2, 7, 8)}.Durable(1, 0, form), "but not to commit it")
	require.False(t, Set{Incoming: ids(1, 2, 7, 8)}.Kept(2, 0, form))
}

// Sets that need more than a majority, or more than all.
func TestNeed(t *testing.T) {
	s := Set{Incoming: []protocol.MemberID{1, 2, 3, 4, 5}, Need: 4}
	self := func(id protocol.MemberID) uint64 { return uint64(id) }
	require.EqualValues(t, 2, s.Agreed(self))
	votes := func(n protocol.MemberID) func(protocol.MemberID) Answer {
		return func(id protocol.MemberID) Answer {
			if id <= n {
				return Granted
			}
			return Refused
		}
	}
	require.Equal(t, Won, s.Vote(votes(4)))
	require.Equal(t, Lost, s.Vote(votes(3)))
	s.Need = 6
	require.Zero(t, s.Agreed(self))
}

package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var five = &Voters{Incoming: []uint64{1, 2, 3, 4, 5}}

// cutter computes distinct rows, which is all that the judge needs.
func cutter(body []byte, k, row uint8) ([]byte, error) {
	return append([]byte{k, row}, body[:len(body)/int(k)]...), nil
}

var body = []byte("abcdefgh")

// held is a member's copy of the body of entry (index, term), coded with k.
func held(index, term uint64, k uint8, form Form) Body {
	b := Body{Index: index, Term: term, K: k, Form: form, Size: uint32(len(body)), Digest: 77}
	if row, ok := form.Row(); ok {
		b.Bytes, _ = cutter(body, k, row)
	} else if form == WholeBody {
		b.Bytes = body
	}
	return b
}

// bench is a judge with five members whose rows are their ids less one.
type bench struct {
	*testing.T
	*Bodies
	seq uint64
}

func newBench(t *testing.T) *bench {
	b := NewBodies(cutter)
	require.NoError(t, b.Configure(five, map[uint64]uint8{1: 0, 2: 1, 3: 2, 4: 3, 5: 4}))
	return &bench{T: t, Bodies: b}
}

// store stores a body durably on a member.
func (b *bench) store(member uint64, e Body) {
	b.Helper()
	b.seq++
	require.NoError(b, b.Entry(member, b.seq, e))
	b.Durable(member, b.seq)
}

// spread puts entry (index, 1) with k on disks: whole on the first members, a row on the rest.
func (b *bench) spread(index uint64, k uint8, whole int, members ...uint64) {
	b.Helper()
	for i, m := range members {
		form := RowForm(uint8(m - 1))
		if i < whole {
			form = WholeBody
		}
		b.store(m, held(index, 1, k, form))
	}
}

// TestBodiesDurable is the predicate of docs/internals/craft.md, 2.1 for five members: three whole copies, or
// 2+k of copies and distinct rows.
func TestBodiesDurable(t *testing.T) {
	for _, c := range []struct {
		k       uint8
		whole   int
		members []uint64
		good    bool
	}{
		{2, 1, []uint64{1, 2, 3, 4}, true},
		{2, 1, []uint64{1, 2, 3}, false},
		{2, 2, []uint64{1, 2, 3}, false},
		{2, 3, []uint64{1, 2, 3}, true},
		{3, 1, []uint64{1, 2, 3, 4, 5}, true},
		{3, 2, []uint64{1, 2, 3, 4}, false}, // docs/internals/craft.md, 2.1: 2 whole and 2 rows are too few with k = 3
		{3, 2, []uint64{1, 2, 3}, false},
		{1, 3, []uint64{1, 2, 3}, true},
		{1, 2, []uint64{1, 2}, false},
	} {
		b := newBench(t)
		b.spread(1, c.k, c.whole, c.members...)
		err := b.Decide(1, 1, five)
		if c.good {
			require.NoError(t, err, "%+v", c)
			require.NoError(t, b.Check())
		} else {
			require.ErrorContains(t, err, "C1", "%+v", c)
		}
	}
}

func TestBodiesSameRowCountsOnce(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3)
	b.store(4, held(1, 1, 2, RowForm(2)))
	require.ErrorContains(t, b.Decide(1, 1, five), "C1")
}

func TestBodiesStayDurable(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.Check())
	b.Release(5, 1, 1)
	require.NoError(t, b.Check(), "four remain")
	b.Release(4, 1, 2)
	require.NoError(t, b.Check(), "of another term")
	b.Release(4, 1, 1)
	require.ErrorContains(t, b.Check(), "C1: the body of (1, term 1), k=2, is whole on 1 and in 2 rows")

	b.Drop(1)
	b.Release(1, 1, 1)
	require.NoError(t, b.Check(), "nobody needs it")
	require.True(t, b.Recoverable(1, nil))
	require.Empty(t, b.Live())
}

// TestBodiesOfVoidEntries: after the end of its instance the body of an entry is not needed, whether it was decided
// before or not.
func TestBodiesOfVoidEntries(t *testing.T) {
	b := newBench(t)
	b.spread(1, 1, 3, 1, 2, 3)
	b.Release(2, 1, 1)
	b.Release(3, 1, 1)
	b.Void(1, 1)
	require.NoError(t, b.Check())
	require.Empty(t, b.Live())
	b.seq++
	require.NoError(t, b.Body(1, b.seq, held(1, 1, 1, NoBody)), "the last copy")
}

// TestBodiesReplacedByAnEntry: the body of a replaced entry no longer counts.
func TestBodiesReplacedByAnEntry(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3, 4)
	b.spread(2, 2, 1, 1, 2, 3, 4)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.Decide(2, 1, five))
	b.seq++
	require.NoError(t, b.Entry(3, b.seq, Body{Index: 1, Term: 2}))
	require.NoError(t, b.Check(), "not on disk yet")
	b.Durable(3, b.seq)
	require.ErrorContains(t, b.Check(), "C1: the body of (1, term 1)")
	require.NoError(t, b.Check(), "what is live stays until its own index is written")
}

func TestBodiesUnderAnotherMembership(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3, 4)
	require.NoError(t, b.Decide(1, 1, five))
	joint := &Voters{Incoming: []uint64{1, 5, 6}, Outgoing: five.Incoming}
	require.NoError(t, b.Configure(joint, nil))
	require.NoError(t, b.Check(), "the outgoing voters can")
	require.NoError(t, b.Configure(&Voters{Incoming: []uint64{1, 2, 3, 4}}, nil))
	require.NoError(t, b.Check())
	require.NoError(t, b.Configure(&Voters{Incoming: []uint64{1, 5, 6}}, nil))
	require.ErrorContains(t, b.Check(), "C1")
}

func TestBodiesOfJointDecisions(t *testing.T) {
	b := newBench(t)
	joint := &Voters{Incoming: []uint64{1, 2, 6}, Outgoing: []uint64{1, 2, 3}}
	b.spread(1, 1, 2, 1, 2)
	require.NoError(t, b.Decide(1, 1, joint), "two of three in both halves")
	b.spread(2, 1, 2, 1, 6)
	require.ErrorContains(t, b.Decide(2, 1, joint), "of [1 2 3]")
}

func TestBodiesFlexibleQuorums(t *testing.T) {
	b := newBench(t)
	b.Flexible(Quorums{Read: 4, Write: 4}) // k = 3
	b.spread(1, 3, 1, 1, 2, 3)
	require.ErrorContains(t, b.Decide(1, 1, five), "C1")
	b = newBench(t)
	b.Flexible(Quorums{Read: 4, Write: 4})
	b.spread(1, 3, 1, 1, 2, 3, 4)
	require.NoError(t, b.Decide(1, 1, five))
	b.Release(4, 1, 1)
	require.ErrorContains(t, b.Check(), "C1")
}

func TestBodiesHaveOneContent(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2)
	require.ErrorContains(t, b.Entry(3, 9, held(1, 1, 3, RowForm(2))), "C4: member 3 has the body of (1, term 1) with k=3")
	other := held(1, 1, 2, RowForm(2))
	other.Digest++
	require.ErrorContains(t, b.Entry(3, 9, other), "C4")
	spoilt := held(1, 1, 2, RowForm(2))
	spoilt.Bytes = append([]byte(nil), spoilt.Bytes...)
	spoilt.Bytes[3] ^= 1
	require.ErrorContains(t, b.Entry(3, 9, spoilt), "which are not that")
	swapped := held(1, 1, 2, RowForm(1))
	swapped.Form = RowForm(2)
	require.ErrorContains(t, b.Entry(3, 9, swapped), "as row 2 of (1, term 1), which are not that")
	require.ErrorContains(t, b.Entry(3, 9, held(2, 1, 2, RowForm(2))), "before anybody held it whole")
	require.ErrorContains(t, b.Entry(3, 9, held(3, 1, 1, RowForm(2))), "which is not coded")
}

// A member that dropped a damaged body may find it again: it starts from an earlier snapshot if the last one is
// damaged too.
func TestBodiesStayDamaged(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2)
	b.Damage(2, 1)
	b.Release(2, 1, 1)
	require.False(t, b.Damaged(2, 1))
	again := held(1, 1, 2, RowForm(1))
	again.Bytes, again.Unreadable = nil, true
	require.NoError(t, b.Start(2, []Body{again}))
	require.True(t, b.Damaged(2, 1))
	require.NoError(t, b.Body(2, 100, held(1, 1, 2, RowForm(1))))
	b.Durable(2, 100)
	require.False(t, b.Damaged(2, 1))
}

func TestBodiesRowsAreOneMembers(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.Configure(&Voters{Incoming: []uint64{1, 2}}, map[uint64]uint8{1: 0, 2: 1, 6: 5}))
	require.ErrorContains(t, b.Configure(five, map[uint64]uint8{7: 2}), "C5: members 3 and 7 have row 2")
	require.ErrorContains(t, b.Configure(five, map[uint64]uint8{8: 9, 9: 9}), "C5")
}

func TestBodiesSaid(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2)
	require.NoError(t, b.ReportHolds(2, 1, 1, 1, RowForm(1)))
	require.NoError(t, b.ReportHolds(2, 1, 1, 1, NoBody))
	require.ErrorContains(t, b.ReportHolds(2, 1, 1, 1, WholeBody), "C7")
	require.ErrorContains(t, b.ReportHolds(2, 1, 1, 2, RowForm(1)), "C7", "another term's")
	require.NoError(t, b.Body(2, 100, held(1, 1, 2, WholeBody)))
	require.ErrorContains(t, b.ReportHolds(2, 1, 1, 1, WholeBody), "C7", "not durable")
	b.Durable(2, 100)
	require.NoError(t, b.ReportHolds(2, 1, 1, 1, WholeBody))

	b.store(2, Body{Index: 1, Term: 3})
	require.NoError(t, b.ReportHolds(2, 3, 1, 1, WholeBody), "said late, and replaced by the leader that hears it")
	require.ErrorContains(t, b.ReportHolds(2, 4, 1, 1, WholeBody), "C7")
	b.store(2, held(1, 1, 2, WholeBody))

	require.NoError(t, b.AnswerHolds(2, 1, 1, 1, NoBody), "not decided")
	b.spread(1, 2, 0, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.AnswerHolds(2, 1, 1, 1, WholeBody))
	require.ErrorContains(t, b.AnswerHolds(3, 1, 1, 1, NoBody), "C2")
	require.ErrorContains(t, b.AnswerHolds(2, 1, 1, 1, RowForm(1)), "C2")
	require.NoError(t, b.ReportHolds(2, 1, 1, 1, RowForm(1)), "may have been said before the disk had more")

	b.seq = 101
	require.NoError(t, b.Restore(6, 1, 101, held(1, 1, 2, RowForm(5))))
	b.Durable(6, 101)
	require.NoError(t, b.AnswerHolds(6, 1, 1, 1, NoBody), "its log does not know of it")
	b.store(6, held(1, 1, 2, RowForm(5)))
	require.ErrorContains(t, b.AnswerHolds(6, 1, 1, 1, NoBody), "C2")
}

// TestBodiesSaidBeforeATrim: a message waits for the disk, and the disk writes a row in place of the whole copy that
// the message reports. A report in a later term than that of the trim was not made before it.
func TestBodiesSaidBeforeATrim(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 2, 1, 2, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.Restore(1, 3, 50, held(1, 1, 2, RowForm(0))))
	b.Durable(1, 50)
	require.Equal(t, RowForm(0), b.Holds(1, 1))
	for range 2 {
		require.NoError(t, b.ReportHolds(1, 3, 1, 1, WholeBody))
		require.NoError(t, b.AnswerHolds(1, 2, 1, 1, WholeBody))
		require.ErrorContains(t, b.ReportHolds(1, 4, 1, 1, WholeBody), "C7")
		require.ErrorContains(t, b.ReportHolds(1, 3, 1, 1, RowForm(4)), "C7", "it never held that")
		require.NoError(t, b.Restore(1, 5, 51, held(1, 1, 2, RowForm(0))), "the row is repaired")
		b.Durable(1, 51)
	}
}

func TestBodiesPrune(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 2, 1, 2, 3)
	require.ErrorContains(t, b.Body(2, 50, held(1, 1, 2, RowForm(1))), "C9", "not decided")
	b.spread(1, 2, 0, 4)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.Body(2, 50, held(1, 1, 2, RowForm(1))), "one whole and three rows remain")
	b.Durable(2, 50)
	require.NoError(t, b.Check())

	b = newBench(t)
	b.spread(1, 2, 3, 1, 2, 3)
	require.NoError(t, b.Decide(1, 1, five))
	require.ErrorContains(t, b.Body(3, 50, held(1, 1, 2, RowForm(2))), "C9")
	require.ErrorContains(t, b.Body(3, 50, held(1, 1, 2, NoBody)), "C9")
}

func TestBodiesRestart(t *testing.T) {
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.Body(4, 50, held(1, 1, 2, WholeBody)))
	require.NoError(t, b.Entry(4, 51, held(2, 1, 2, WholeBody)))
	require.NoError(t, b.Start(4, []Body{held(1, 1, 2, RowForm(3))}), "nothing of what was pending")
	require.NoError(t, b.Body(4, 52, held(1, 1, 2, WholeBody)))
	require.NoError(t, b.Start(4, []Body{held(1, 1, 2, WholeBody)}), "all of it")
	require.NoError(t, b.ReportHolds(4, 1, 1, 1, WholeBody))
	require.ErrorContains(t, b.Start(4, nil),
		"member 4 restarts: has nothing of (1, term 1), which is decided; it had the whole")
	require.ErrorContains(t, b.Start(4, []Body{held(1, 1, 2, RowForm(3))}), "it had the whole")
	require.ErrorContains(t, b.Start(3, []Body{held(1, 1, 2, WholeBody)}), "which it never wrote")
	b.Drop(1)
	require.NoError(t, b.Start(4, nil))
}

// TestBodiesOfOtherVotes: a member that has voted for another command without a body may lose the one that it had.
func TestBodiesOfOtherVotes(t *testing.T) {
	votes := func(term uint64) func(uint64) (uint64, bool) {
		return func(index uint64) (uint64, bool) { return term, index == 1 }
	}
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	b.Voted(4, votes(1))
	require.ErrorContains(t, b.Start(4, nil), "which is decided")
	b.Voted(4, votes(2))
	require.NoError(t, b.Start(4, nil))
}

// TestBodiesOfReplacedEntries: a member that was not counted replaces a decided entry by one without a body. Its copy
// does not count then. It counts again when the entry returns, or if the state refers to it.
func TestBodiesOfReplacedEntries(t *testing.T) {
	for name, back := range map[string]func(b *bench){
		"the entry comes back": func(b *bench) {
			require.NoError(t, b.Entry(5, 51, Body{Index: 1, Term: 1, K: 2, Size: uint32(len(body)), Digest: 77}))
			b.Durable(5, 51)
		},
		"the state refers to it": func(b *bench) { b.Refer(5, 1, 1) },
	} {
		b := newBench(t)
		b.spread(1, 2, 1, 1, 2, 3, 4, 5)
		require.NoError(t, b.Decide(1, 1, five))
		require.Equal(t, RowForm(4), b.Holds(5, 1))
		require.NoError(t, b.Entry(5, 50, Body{Index: 1, Term: 2}))
		b.Durable(5, 50)
		require.Equal(t, NoBody, b.Holds(5, 1))
		require.ErrorContains(t, b.ReportHolds(5, 3, 1, 1, RowForm(4)), "C7")
		back(b)
		require.Equal(t, RowForm(4), b.Holds(5, 1), name)
		require.NoError(t, b.Start(5, []Body{held(1, 1, 2, RowForm(4))}))
		require.ErrorContains(t, b.Start(5, nil), "which is decided")
	}
	b := newBench(t)
	b.spread(1, 2, 1, 1, 2, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	require.NoError(t, b.Entry(5, 50, Body{Index: 1, Term: 2}))
	b.Durable(5, 50)
	require.NoError(t, b.Start(5, nil), "a start may drop it")
}

func TestBodiesDamage(t *testing.T) {
	b := newBench(t)
	b.spread(1, 3, 1, 1, 2, 3, 4, 5)
	require.NoError(t, b.Decide(1, 1, five))
	all := five.Incoming
	b.Damage(1, 1)
	b.Damage(2, 1)
	require.NoError(t, b.Check(), "damage is no loss")
	require.True(t, b.Recoverable(1, all))
	require.False(t, b.Recoverable(1, []uint64{1, 2, 3, 4}))
	require.False(t, b.RecoverableFromRows(1, []uint64{1, 2, 3, 4}))
	require.True(t, b.RecoverableFromRows(1, all))
	require.Equal(t, NoBody, b.Holds(1, 1))
	require.Equal(t, RowForm(2), b.Holds(3, 1))
	require.NoError(t, b.AnswerHolds(1, 1, 1, 1, NoBody), "it may have noticed")

	require.NoError(t, b.Start(1, nil), "found damaged: as good as nothing")
	require.NoError(t, b.Body(1, 60, held(1, 1, 3, RowForm(0))), "repaired")
	b.Durable(1, 60)
	require.Equal(t, RowForm(0), b.Holds(1, 1))
	require.True(t, b.Recoverable(1, []uint64{1, 3, 4}))
	require.Equal(t, body, b.Whole(1))
}

func TestLedgerJudgesDeletions(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	put(t, l, entry(2, 1, 8), 2)
	config := entry(3, 1, 9)
	config.Voters = five
	put(t, l, config, 2)
	require.NoError(t, l.Decide(1, 1, 1, 1, 7))
	require.ErrorContains(t, l.Cut(2, 0), "C2")
	require.ErrorContains(t, l.Cut(2, 2), "C8")
	require.ErrorContains(t, l.Cut(1, 2), "cuts a log of 1…1")

	put(t, l, entry(1, 1, 7), 3)
	put(t, l, entry(2, 1, 8), 3)
	require.NoError(t, l.Cut(3, 1))
	index, term := l.Last(3)
	require.Equal(t, []uint64{1, 1}, []uint64{index, term})
	require.NoError(t, l.Write(3, 4, entry(2, 1, 8)), "it comes again")
	require.NoError(t, l.Durable(3, 4))
}

// TestLedgerJudgesLateDeletions: a new leader is paused, and the next one decides an entry that the first one finds
// undecided when it continues.
func TestLedgerJudgesLateDeletions(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	put(t, l, Record{Kind: StateRecord, Term: 2, Vote: 2}, 2)
	put(t, l, Record{Kind: StateRecord, Term: 3, Vote: 1}, 1, 3)
	require.NoError(t, l.Lead(2, 2))
	require.NoError(t, l.Lead(1, 3))
	put(t, l, entry(1, 1, 7), 3)
	put(t, l, entry(2, 3, 8), 1, 3)
	require.NoError(t, l.Decide(1, 3, 1, 1, 7))
	require.NoError(t, l.Cut(2, 0), "member 2 leads in term 2, and this is decided in term 3")
	put(t, l, Record{Kind: StateRecord, Term: 3}, 2)
	put(t, l, entry(1, 1, 7), 2)
	require.ErrorContains(t, l.Cut(2, 0), "C2")
}

package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var three = &Voters{Incoming: []uint64{1, 2, 3}}

// cluster is a ledger of three members that start empty in term 1, with member 1 as the leader.
func cluster(t *testing.T) *Ledger {
	t.Helper()
	l := NewLedger()
	for m := uint64(1); m <= 3; m++ {
		require.NoError(t, l.Start(m, []Record{{Kind: BaseRecord, Voters: three}}))
		require.NoError(t, l.Write(m, 1, Record{Kind: StateRecord, Term: 1, Vote: 1}))
		require.NoError(t, l.Durable(m, 1))
	}
	require.NoError(t, l.Lead(1, 1))
	return l
}

func entry(index, term, digest uint64) Record {
	return Record{Kind: EntryRecord, Index: index, Term: term, Digest: digest}
}

// put writes an entry durably on some members.
func put(t *testing.T, l *Ledger, r Record, members ...uint64) {
	t.Helper()
	for _, m := range members {
		require.NoError(t, l.Write(m, 2, r))
		require.NoError(t, l.Durable(m, 2))
	}
}

func TestLedgerDecides(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	require.NoError(t, l.Decide(1, 1, 1, 1, 7))
	require.NoError(t, l.Decide(2, 1, 1, 1, 7))
	require.Equal(t, uint64(1), l.Decided())
	require.NoError(t, l.Retained())
	require.ErrorContains(t, l.Decide(3, 1, 1, 1, 8), "decided was term 1")
	require.ErrorContains(t, l.Decide(2, 1, 2, 1, 7), "without being the leader")
	require.ErrorContains(t, l.Decide(1, 1, 3, 1, 7), "2 is next")
}

func TestLedgerWantsAQuorumOfDisks(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1)
	require.NoError(t, l.Write(2, 2, entry(1, 1, 7))) // written, not durable
	require.ErrorContains(t, l.Decide(1, 1, 1, 1, 7), "not on the disks of a quorum")
}

func TestLedgerElectionSafety(t *testing.T) {
	l := cluster(t)
	require.NoError(t, l.Lead(1, 1))
	require.ErrorContains(t, l.Lead(2, 1), "election safety")
}

func TestLedgerLogMatching(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	require.ErrorContains(t, l.Write(3, 2, entry(1, 1, 8)), "log matching")
	put(t, l, entry(2, 1, 9), 1)
	require.ErrorContains(t, l.Write(3, 2, entry(2, 1, 9)), "writes entry 2 after 0")
	require.NoError(t, l.Write(3, 2, entry(1, 0, 5)))
	require.ErrorContains(t, l.Write(3, 2, entry(2, 1, 9)), "log matching", "same entry after another one")
}

func TestLedgerLeaderCompleteness(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	require.NoError(t, l.Decide(1, 1, 1, 1, 7))
	require.ErrorContains(t, l.Lead(3, 2), "leader completeness")
	require.NoError(t, l.Lead(2, 3))
}

func TestLedgerDecidedIsNeverErased(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	put(t, l, entry(1, 0, 5), 3)
	require.NoError(t, l.Decide(1, 1, 1, 1, 7))
	require.ErrorContains(t, l.Write(2, 3, entry(1, 2, 8)), "erases decided")
	require.NoError(t, l.Write(3, 3, entry(1, 1, 7)), "what was not decided may go")
}

// TestLedgerNotCounted: a member in an earlier term may follow that term's leader, which never had an entry that a
// later one has decided without it.
func TestLedgerNotCounted(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2, 3)
	for _, m := range []uint64{1, 2} {
		require.NoError(t, l.Write(m, 3, Record{Kind: StateRecord, Term: 3, Vote: 1}))
		require.NoError(t, l.Durable(m, 3))
	}
	require.NoError(t, l.Lead(1, 3))
	require.NoError(t, l.Decide(1, 3, 1, 1, 7))
	require.NoError(t, l.Write(3, 3, Record{Kind: StateRecord, Term: 2}))
	require.NoError(t, l.Write(3, 3, entry(1, 2, 8)), "of the leader of term 2")
	require.NoError(t, l.Retained())
	require.ErrorContains(t, l.Write(2, 4, entry(1, 2, 8)), "erases decided", "it was counted")
}

func TestLedgerVotes(t *testing.T) {
	l := cluster(t)
	require.NoError(t, l.Write(1, 2, Record{Kind: StateRecord, Term: 1, Vote: 3}))
	require.ErrorContains(t, l.Durable(1, 2), "after voting for 1")
	require.ErrorContains(t, l.Write(2, 2, Record{Kind: StateRecord, Term: 0}), "goes back")
	require.NoError(t, l.Write(2, 2, Record{Kind: StateRecord, Term: 2, Vote: 3}))
	require.ErrorContains(t, l.SendVote(2, 2, 3), "its disk says term 1")
	require.NoError(t, l.Durable(2, 2))
	require.NoError(t, l.SendVote(2, 2, 3))
	require.ErrorContains(t, l.SendVote(2, 2, 1), "after voting for 3")
	require.ErrorContains(t, l.SendTerm(3, 2), "its disk says term 1")
}

func TestLedgerStored(t *testing.T) {
	l := cluster(t)
	require.NoError(t, l.Write(2, 2, entry(1, 1, 7)))
	require.ErrorContains(t, l.SendStored(2, 1, 1), "its disk says term 1, last 0")
	require.NoError(t, l.Durable(2, 2))
	require.NoError(t, l.SendStored(2, 1, 1))
}

func TestLedgerLogged(t *testing.T) {
	l := cluster(t)
	require.NoError(t, l.Write(2, 2, entry(1, 1, 7)))
	require.False(t, l.Logged(2, 1, 1), "not durable")
	put(t, l, entry(1, 1, 7), 1)
	require.NoError(t, l.Durable(2, 2))
	require.True(t, l.Logged(2, 1, 1))
	require.False(t, l.Logged(2, 1, 2), "another term's")
	require.False(t, l.Logged(2, 2, 1), "no entry there")
	require.False(t, l.Logged(9, 1, 1), "no such member")

	put(t, l, entry(2, 1, 8), 1, 2)
	require.NoError(t, l.Decide(1, 1, 1, 1, 7))
	require.NoError(t, l.Decide(1, 1, 2, 1, 8))
	put(t, l, Record{Kind: BaseRecord, Index: 2, Term: 1, Voters: three}, 2)
	require.True(t, l.Logged(2, 1, 1), "a snapshot stands for it")
	require.True(t, l.Logged(2, 2, 1), "a snapshot stands for it")
}

func TestLedgerKnowsATermByItsEntries(t *testing.T) {
	l := cluster(t)
	require.ErrorContains(t, l.SendTerm(2, 4), "its disk says term 1")
	put(t, l, entry(1, 4, 7), 2)
	require.NoError(t, l.SendTerm(2, 4))
	require.NoError(t, l.SendStored(2, 4, 1))
	require.ErrorContains(t, l.SendVote(2, 4, 3), "tells 3 of its vote in term 4")
	require.ErrorContains(t, l.SendTerm(2, 5), "its disk says term 4")
}

func TestLedgerRestart(t *testing.T) {
	state := Record{Kind: StateRecord, Term: 1, Vote: 1}
	base := Record{Kind: BaseRecord, Voters: three}
	for _, c := range []struct {
		name  string
		found []Record
		err   string
	}{
		{"everything durable", []Record{state, base, entry(1, 1, 7)}, ""},
		{"and one that was not", []Record{state, base, entry(1, 1, 7), entry(2, 1, 8)}, ""},
		{"a durable entry lost", []Record{state, base}, "last index 0, not 1"},
		{"a vote lost", []Record{{Kind: StateRecord, Term: 1}, base, entry(1, 1, 7)}, "vote 0"},
		{"a hole", []Record{state, base, entry(1, 1, 7), entry(2, 1, 9)}, "found on disk"},
		{"something never written", []Record{state, base, entry(1, 1, 6)}, "digest"},
		{"a later snapshot", []Record{state, {Kind: BaseRecord, Index: 1, Term: 1, Voters: three}}, ""},
		{"a snapshot of nothing decided", []Record{state, {Kind: BaseRecord, Index: 5, Term: 1, Voters: three}},
			"not decided"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := cluster(t)
			put(t, l, entry(1, 1, 7), 1, 2)
			require.NoError(t, l.Decide(1, 1, 1, 1, 7))
			require.NoError(t, l.Write(2, 3, entry(2, 1, 8)))
			require.NoError(t, l.Write(2, 4, entry(3, 1, 9)))
			err := l.Start(2, c.found)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
		})
	}
}

func TestLedgerBase(t *testing.T) {
	l := cluster(t)
	put(t, l, entry(1, 1, 7), 1, 2)
	require.ErrorContains(t, l.Write(3, 2, Record{Kind: BaseRecord, Index: 1, Term: 1, Voters: three}), "not decided")
	require.NoError(t, l.Decide(1, 1, 1, 1, 7))
	require.NoError(t, l.Write(3, 2, Record{Kind: BaseRecord, Index: 1, Term: 1, Voters: three}))
	put(t, l, entry(2, 1, 8), 3)
}

func TestConfigurations(t *testing.T) {
	l := cluster(t)
	require.Len(t, l.Configurations(), 1)
	joint := &Voters{Incoming: []uint64{1, 2, 4}, Outgoing: []uint64{1, 2, 3}}
	r := entry(1, 1, 7)
	r.Voters = joint
	put(t, l, r, 1, 2)
	require.Len(t, l.Configurations(), 2, "not decided: both may be in force")
	require.NoError(t, l.Decide(1, 1, 1, 1, 7), "1 and 2 are a majority of both")
	require.Equal(t, []*Voters{joint}, l.Configurations())
}

func TestLedgerCells(t *testing.T) {
	l := cluster(t)
	found := []Record{{Kind: BaseRecord, Voters: three}, {Kind: StateRecord, Term: 1, Vote: 1}}
	cell := func(number, digest uint64) Record { return Record{Kind: CellRecord, Index: number, Digest: digest} }
	put(t, l, cell(7, 70), 1)
	put(t, l, cell(8, 80), 1)
	put(t, l, Record{Kind: DropRecord, Index: 8}, 1)
	require.NoError(t, l.Write(1, 3, cell(7, 71)))
	require.NoError(t, l.Write(1, 4, cell(9, 90)))
	require.ErrorContains(t, l.Start(1, found), "other cells: 0 of them, not 1")
	require.ErrorContains(t, l.Start(1, append(found, cell(7, 70), cell(8, 80))), "other cells")
	require.ErrorContains(t, l.Start(1, append(found, cell(7, 70), cell(9, 90))), "other cells", "in order")
	require.NoError(t, l.Write(2, 3, cell(7, 71)))
	require.NoError(t, l.Start(2, append(found, cell(7, 71))), "what was not durable may be there")
	require.NoError(t, l.Write(3, 3, cell(7, 71)))
	require.NoError(t, l.Start(3, found), "or not")
}

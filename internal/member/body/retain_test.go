package body

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// committedEntry is an entry with a body as a core commits it.
func committedEntry(ref protocol.BodyRef, form protocol.Form) protocol.Entry {
	return protocol.Entry{
		Index: ref.Index, Term: ref.Term, Kind: protocol.EntryBatch, Count: 1, K: ref.K, BodySize: ref.Size,
		BodyDigest: ref.Digest, Form: form,
	}
}

func someRef(index protocol.Index, k uint8) protocol.BodyRef {
	return protocol.BodyRef{Instance: 1, Index: index, Term: 3, K: k, Size: 1000, Digest: 7}
}

func requireInput(t *testing.T, r *Retention, want protocol.Bodies) {
	t.Helper()
	got, changed := r.Input()
	require.True(t, changed)
	require.Equal(t, want, got)
	_, changed = r.Input()
	require.False(t, changed, "told once")
	require.NoError(t, r.Check())
}

func TestBodiesLiveAsLongAsTheLogOrTheStateNeedsThem(t *testing.T) {
	r := NewRetention(1, newHeld(), true)
	r.Restart(10, []protocol.BodyRef{someRef(4, 3)})
	requireInput(t, r, protocol.Bodies{Missing: 1, MaxK: 3, Partial: 3})
	r.Stored(someRef(4, 3))
	requireInput(t, r, protocol.Bodies{MaxK: 3, Partial: 3})

	r.Committed([]protocol.Entry{committedEntry(someRef(11, 2), protocol.RowForm(1)), {Index: 12, Term: 3}})
	r.Given(someRef(11, 2))
	require.False(t, r.Release(someRef(11, 2)), "the log needs it")
	require.True(t, r.Release(someRef(4, 3)))
	require.False(t, r.Release(someRef(4, 3)), "once")
	requireInput(t, r, protocol.Bodies{MaxK: 2})

	r.Committed([]protocol.Entry{committedEntry(someRef(13, 4), protocol.FormWhole)})
	r.Given(someRef(13, 4))
	r.Compact(13)
	require.False(t, r.alive(KeyOf(someRef(11, 2))))
	require.True(t, r.alive(KeyOf(someRef(13, 4))), "the state refers to it")
	requireInput(t, r, protocol.Bodies{MaxK: 4, Partial: 4})
}

func TestWithoutAKeeperBodiesGoWithTheLog(t *testing.T) {
	r := NewRetention(1, newHeld(), false)
	r.Committed([]protocol.Entry{committedEntry(someRef(1, 2), protocol.FormWhole)})
	r.Given(someRef(1, 2))
	requireInput(t, r, protocol.Bodies{MaxK: 2, Partial: 2})
	r.Compact(1)
	require.False(t, r.alive(KeyOf(someRef(1, 2))))
	requireInput(t, r, protocol.Bodies{})
}

func TestMissingBodiesAreAskedForAgainAndAgain(t *testing.T) {
	held := newHeld()
	held.put(someRef(2, 1), protocol.FormWhole, make([]byte, 1000))
	r := NewRetention(1, held, true)
	r.Committed([]protocol.Entry{
		committedEntry(someRef(1, 2), protocol.FormNone),
		committedEntry(someRef(2, 1), protocol.FormNone), // the core does not know that the disk has it
		committedEntry(someRef(3, 2), protocol.FormNone),
	})
	requireInput(t, r, protocol.Bodies{Missing: 2, MaxK: 2, Partial: 2})
	require.Equal(t, []protocol.BodyRef{someRef(1, 2)}, r.Due(0, 1))
	require.Equal(t, []protocol.BodyRef{someRef(3, 2)}, r.Due(0, 9))
	require.Empty(t, r.Due(0, 9))
	require.Len(t, r.Due(lackPause, 9), 2)
	require.Empty(t, r.Due(2*lackPause, 9), "ever less often")
	r.Stored(someRef(1, 2))
	require.Equal(t, []protocol.BodyRef{someRef(3, 2)}, r.Due(time.Hour, 9))
	r.Compact(3)
	require.Empty(t, r.Due(2*time.Hour, 9), "nobody needs it any more")
	requireInput(t, r, protocol.Bodies{})
}

func TestWhatTheStateDoesNotUseIsNotMissed(t *testing.T) {
	r := NewRetention(1, newHeld(), true)
	for i := protocol.Index(1); i <= 3; i++ {
		r.Committed([]protocol.Entry{committedEntry(someRef(i, 2), protocol.FormNone)})
	}
	r.Given(someRef(1, 2))
	r.Given(someRef(3, 2))
	requireInput(t, r, protocol.Bodies{Missing: 3, MaxK: 2, Partial: 2})
	require.False(t, r.Release(someRef(1, 2)), "the log has it still")
	r.Passed(someRef(2, 2)) // a duplicate
	r.Passed(someRef(3, 2)) // a duplicate of its entry is not what counts
	require.Equal(t, []protocol.BodyRef{someRef(3, 2)}, r.Due(0, 9), "others may have forgotten the rest")
	require.False(t, r.Lost(someRef(1, 2)))
	require.NoError(t, r.Check())
	r.Compact(3)
	require.Empty(t, r.unused)
}

func TestDamageIsALoss(t *testing.T) {
	held := newHeld()
	ref := someRef(2, 2)
	held.put(ref, protocol.RowForm(0), make([]byte, 1000))
	r := NewRetention(1, held, false)
	require.False(t, r.Lost(ref), "not known to be committed: no business of others")
	r.Committed([]protocol.Entry{committedEntry(ref, protocol.RowForm(0))})
	require.True(t, r.Lost(ref))
	require.False(t, r.Lost(ref), "no news")
	require.True(t, r.Missing(ref))
	requireInput(t, r, protocol.Bodies{Missing: 1, MaxK: 2, Partial: 2})
	other := ref
	other.Term++
	require.False(t, r.Lost(other))
}

// A snapshot brings a state that refers to a body. The state gives it up before the entry comes to the log: no one uses
// the body then, so it does not count as missing.
func TestWhatTheStateGaveUpIsNotMissedWhenItsEntryComes(t *testing.T) {
	r := NewRetention(1, newHeld(), true)
	r.Renew(0, 0, []protocol.BodyRef{someRef(5, 2)})
	require.False(t, r.Release(someRef(5, 2)), "the log may still bring it")
	r.Committed([]protocol.Entry{committedEntry(someRef(5, 2), protocol.FormNone),
		committedEntry(someRef(6, 3), protocol.FormNone)})
	require.NoError(t, r.Check())
	require.Equal(t, []protocol.BodyRef{someRef(6, 3)}, r.Due(0, 9))
	requireInput(t, r, protocol.Bodies{Missing: 1, MaxK: 3, Partial: 3})
}

func TestASnapshotBringsItsOwnReferences(t *testing.T) {
	held := newHeld()
	for i := protocol.Index(1); i <= 3; i++ {
		held.put(someRef(i, 2), protocol.RowForm(0), make([]byte, 1000))
	}
	r := NewRetention(1, held, true)
	for i := protocol.Index(1); i <= 3; i++ {
		r.Committed([]protocol.Entry{committedEntry(someRef(i, 2), protocol.RowForm(0))})
		r.Given(someRef(i, 2))
	}
	requireInput(t, r, protocol.Bodies{MaxK: 2, Partial: 2})
	r.Installing(50)
	_, changed := r.Input()
	require.False(t, changed, "nobody knows yet what the state refers to")
	r.Committed([]protocol.Entry{committedEntry(someRef(51, 3), protocol.FormWhole)})
	require.Empty(t, r.Dead(nil), "nor what is dead")
	r.Restart(50, []protocol.BodyRef{someRef(2, 2), someRef(40, 2)})
	requireInput(t, r, protocol.Bodies{Missing: 1, MaxK: 3, Partial: 3})
	require.Equal(t, []protocol.BodyRef{someRef(40, 2)}, r.Due(0, 9))
	require.False(t, r.alive(KeyOf(someRef(1, 2))))
	require.True(t, r.alive(KeyOf(someRef(2, 2))))
	require.True(t, r.alive(KeyOf(someRef(51, 3))))
}

func TestACopyIsTrimmedOnlyWhereOthersHoldEnough(t *testing.T) {
	c := membersWithSlots(5)
	ref := someRef(9, 3) // needs |A|+|B| ≥ 5−3+3
	answer := func(n *HolderCount, id protocol.MemberID, form protocol.Form) {
		n.Receive(&protocol.Message{
			Type: protocol.MsgFetchResp, From: id, Context: n.context, Reject: form == protocol.FormNone, Commit: 9,
			Holdings: []protocol.Holding{{Index: 9, Term: 3, Form: form}},
		})
	}
	n := NewHolderCount(ref, 7, time.Minute, c, 1)
	require.Len(t, n.Questions(), 4)
	for id := protocol.MemberID(2); id <= 4; id++ {
		answer(n, id, protocol.RowForm(uint8(id-1)))
		answer(n, id, protocol.RowForm(uint8(id-1)))
		require.False(t, n.Enough())
	}
	answer(n, 5, protocol.FormNone)
	require.False(t, n.Enough())
	answer(n, 5, protocol.RowForm(3)) // the row of member 4
	require.False(t, n.Enough(), "rows count once")
	n.Receive(&protocol.Message{
		Type: protocol.MsgFetchResp, From: 5, Context: n.context,
		Holdings: []protocol.Holding{{Index: 9, Term: 3, Form: protocol.FormWhole}},
	})
	require.False(t, n.Enough(), "it may go there again")
	answer(n, 5, protocol.FormWhole)
	require.True(t, n.Enough())

	joint := c.Clone()
	joint.Outgoing = []protocol.MemberID{1, 2, 3}
	require.Nil(t, NewHolderCount(ref, 7, 0, &joint, 1))
	require.Nil(t, NewHolderCount(ref, 7, 0, c, 9))
	require.Nil(t, NewHolderCount(someRef(9, 1), 7, 0, c, 1), "a body that is not coded has no rows")
}

// TestWhatIsNotKnownToBeCommittedIsNotKept: a row that was only acknowledged may go, by a leader of an earlier
// term. Others must not give up whole copies for it.
func TestWhatIsNotKnownToBeCommittedIsNotKept(t *testing.T) {
	held, ref := newHeld(), someRef(9, 3)
	held.put(ref, protocol.RowForm(0), make([]byte, 1000))
	r := NewRetention(1, held, true)
	require.False(t, r.Keeps(ref))
	r.Committed([]protocol.Entry{committedEntry(ref, protocol.RowForm(0))})
	require.True(t, r.Keeps(ref))
	later := ref
	later.Term++
	require.False(t, r.Keeps(later), "that is another entry")
	r.Given(ref)
	r.cut(9)
	require.True(t, r.Keeps(ref), "the state refers to it")
	require.True(t, r.Lost(ref))
	require.False(t, r.Keeps(ref))
}

// TestRowsBecomeWholeWhereTheConfigurationSaysSo: only rows of bodies with too large a k do, in
// order. After a restart the member knows what was there before.
func TestRowsBecomeWholeWhereTheConfigurationSaysSo(t *testing.T) {
	held := newHeld()
	r := NewRetention(1, held, true)
	for i, k := range []uint8{3, 2, 3, 4, 1} {
		ref := someRef(protocol.Index(i+1), k)
		form := protocol.RowForm(0)
		if i == 2 || k == 1 {
			form = protocol.FormWhole
		}
		held.put(ref, form, make([]byte, 1000))
		r.Committed([]protocol.Entry{committedEntry(ref, form)})
		r.Given(ref)
	}
	requireInput(t, r, protocol.Bodies{MaxK: 4, Partial: 4})
	require.Empty(t, r.Due(0, 9))
	c := membersWithSlots(5)
	c.HoldWhole(2, func(id protocol.MemberID) bool { return id == 1 })
	require.True(t, r.Obey(c, 1))
	require.False(t, r.Obey(c, 1))
	requireInput(t, r, protocol.Bodies{MaxK: 4, Partial: 4, Restripes: 1})
	require.Equal(t, []protocol.BodyRef{someRef(1, 3), someRef(4, 4)}, r.Due(0, 9))
	require.Equal(t, 2, r.Short())
	require.Zero(t, r.Lacking())

	form, _ := RestoreForm(c, 1, someRef(4, 4), held)
	require.Equal(t, protocol.FormWhole, form)
	held.put(someRef(4, 4), form, make([]byte, 1000))
	r.Stored(someRef(4, 4))
	requireInput(t, r, protocol.Bodies{MaxK: 4, Partial: 3, Restripes: 1})
	again := NewRetention(1, held, true)
	again.Restart(5, []protocol.BodyRef{someRef(1, 3), someRef(2, 2), someRef(3, 3), someRef(4, 4)})
	require.True(t, again.Obey(c, 1))
	requireInput(t, again, protocol.Bodies{MaxK: 4, Partial: 3, Restripes: 1})
	require.Equal(t, []protocol.BodyRef{someRef(1, 3)}, again.Due(0, 9))

	r.Stored(someRef(1, 3)) // as a row; that began before
	require.True(t, r.Wants(someRef(1, 3)))
	require.True(t, r.Lost(someRef(3, 3)), "damage")
	requireInput(t, r, protocol.Bodies{Missing: 1, MaxK: 4, Partial: 3, Restripes: 1})
	require.False(t, r.Release(someRef(1, 3)), "in the log still")
	require.False(t, r.Wants(someRef(1, 3)), "nobody needs it")
	held.put(someRef(3, 3), protocol.FormWhole, make([]byte, 1000))
	r.Stored(someRef(3, 3))
	requireInput(t, r, protocol.Bodies{MaxK: 4, Partial: 2, Restripes: 1}) // what no one needs may stay a row
}

// TestACopyThatIsToStayIsNotTrimmed: that holds from when the configuration was applied. What was
// trimmed before counts as a row at once.
func TestACopyThatIsToStayIsNotTrimmed(t *testing.T) {
	held := newHeld()
	r := NewRetention(1, held, true)
	for i := protocol.Index(1); i <= 2; i++ {
		held.put(someRef(i, 3), protocol.FormWhole, make([]byte, 1000))
		r.Committed([]protocol.Entry{committedEntry(someRef(i, 3), protocol.FormWhole)})
		r.Given(someRef(i, 3))
	}
	requireInput(t, r, protocol.Bodies{MaxK: 3})
	require.True(t, r.Trim(someRef(1, 3)))
	requireInput(t, r, protocol.Bodies{MaxK: 3, Partial: 3})
	c := membersWithSlots(3)
	require.True(t, c.HoldWhole(2, func(protocol.MemberID) bool { return true }))
	require.False(t, c.HoldWhole(2, func(protocol.MemberID) bool { return true }))
	r.Obey(c, 1)
	requireInput(t, r, protocol.Bodies{MaxK: 3, Partial: 3, Restripes: 1})
	require.True(t, r.Wants(someRef(1, 3)), "the disk has the whole, but not for long")
	require.False(t, r.Whole(someRef(1, 3)))
	held.put(someRef(1, 3), protocol.RowForm(0), make([]byte, 1000))
	r.Stored(someRef(1, 3))
	require.True(t, r.Wants(someRef(1, 3)))
	held.put(someRef(1, 3), protocol.FormWhole, make([]byte, 1000))
	r.Stored(someRef(1, 3))
	requireInput(t, r, protocol.Bodies{MaxK: 3, Restripes: 1})
	require.False(t, r.Trim(someRef(2, 3)))
	require.Nil(t, NewHolderCount(someRef(2, 3), 7, 0, c, 1))
	require.False(t, r.Trim(someRef(9, 3)), "not alive")
	c.HoldWhole(0, func(protocol.MemberID) bool { return false })
	r.Obey(c, 1)
	requireInput(t, r, protocol.Bodies{MaxK: 3, Restripes: 2})
	require.True(t, r.Trim(someRef(2, 3)))
	require.False(t, r.Trim(someRef(2, 3)), "it is being trimmed")
	requireInput(t, r, protocol.Bodies{MaxK: 3, Partial: 3, Restripes: 2})
}

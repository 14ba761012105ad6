package apply

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// TestWhatWaitsToBeAppliedHoldsNoFrames: a payload that waits came in a frame with bodies and
// other entries. It does not keep that frame in memory.
func TestWhatWaitsToBeAppliedHoldsNoFrames(t *testing.T) {
	const limit = 1 << 10
	q := &ApplyQueue{Limit: limit}
	push := func(e protocol.Entry) *protocol.Entry {
		q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{e},
			Stored: func() protocol.Index { return 7 }}})
		entries := q.items[len(q.items)-1].Commit.Entries
		return &entries[len(entries)-1]
	}
	frame := []byte("....small command....")
	e := push(protocol.Entry{Kind: protocol.EntryBatch, Payload: frame[4:17], Body: bytes.Repeat([]byte("x"), 100),
		BodySize: 100})
	require.Equal(t, "small command", string(e.Payload))
	require.Nil(t, e.Body)
	clear(frame)
	require.Equal(t, "small command", string(e.Payload), "it is a copy")

	q.Left(-(limit + 1 - q.bytes), 0)
	require.Nil(t, push(protocol.Entry{Index: 7, Kind: protocol.EntryBatch, Payload: []byte("later")}).Payload,
		"it is read again")
	require.NotNil(t, push(protocol.Entry{Kind: protocol.EntryConfig, Payload: []byte("now")}).Payload)
	require.EqualValues(t, limit+1+len("now"), q.bytes)
	require.NotNil(t, push(protocol.Entry{Index: 8, Kind: protocol.EntryBatch, Payload: []byte("soon")}).Payload,
		"the disk does not have it yet")
}

// TestCommitsThatWaitAreAppliedTogether joins commits of an instance, unless something else is to be done between them,
// someone waits for one, or they are too large together.
func TestCommitsThatWaitAreAppliedTogether(t *testing.T) {
	q := &ApplyQueue{Limit: 1 << 30}
	shared := make([]protocol.Entry, 1, 2) // room behind it that is someone else's
	push := func(instance protocol.InstanceID, index protocol.Index, bytes int, applied func()) {
		e := protocol.Entry{Index: index, Kind: protocol.EntryBatch, Payload: make([]byte, bytes), Size: uint32(bytes)}
		entries := []protocol.Entry{e}
		if instance == 1 && index == 1 {
			shared[0] = e
			entries = shared
		}
		q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: instance, Entries: entries}, Applied: applied})
	}
	push(1, 1, 10, nil)
	push(2, 1, 10, nil)
	push(1, 2, 10, nil)
	push(1, 3, 10, nil)
	require.Empty(t, shared[:2][1].Payload, "what is behind the entries is not written to")
	push(1, 4, joinBytes, nil)
	q.Push(ApplyItem{Due: true})
	push(1, 5, 10, nil)
	push(1, 6, 10, func() {})
	push(1, 7, 10, nil)
	var got []string
	for _, it := range q.Take(nil) {
		text := fmt.Sprint("instance ", it.Commit.Instance, ":")
		for i := range it.Commit.Entries {
			text += fmt.Sprint(" ", it.Commit.Entries[i].Index)
		}
		got = append(got, text)
	}
	require.Equal(t, []string{"instance 1: 1 2 3", "instance 2: 1", "instance 1: 4", "instance 0:", "instance 1: 5",
		"instance 1: 6", "instance 1: 7"}, got)
}

// TestEachMembershipIsSeen: a change of the membership that waits with the next one is seen by who waits for it,
// although that one undoes it.
func TestEachMembershipIsSeen(t *testing.T) {
	q := &ApplyQueue{Limit: 1 << 20}
	config := func(index protocol.Index, ids ...protocol.MemberID) {
		c := protocol.Config{}
		for _, id := range ids {
			c.Members = append(c.Members, protocol.Member{ID: id})
		}
		e := protocol.Entry{Index: index, Kind: protocol.EntryConfig, Payload: protocol.EncodeConfig(c)}
		q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{e}}})
	}
	q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{{Index: 1, Kind: protocol.EntryNoop}}}})
	config(2, 1, 2)
	q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{{Index: 3, Kind: protocol.EntryNoop}}}})
	config(4, 1)
	var last []protocol.Index
	for _, it := range q.Take(nil) {
		last = append(last, it.Commit.Entries[len(it.Commit.Entries)-1].Index)
	}
	require.Equal(t, []protocol.Index{1, 3, 4}, last)
}

// TestASnapshotStandsForWhatWaits: commits of its instance are dropped, those of others stay. As long as the snapshot
// waits, it is no error that something is missing in the log.
func TestASnapshotStandsForWhatWaits(t *testing.T) {
	q := &ApplyQueue{Limit: 1 << 20}
	var got []string
	b := membertest.OneCommand(1, "x", &got)
	q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{membertest.EntryOf(1, b)},
		Own: []*intake.Batch{b}}})
	q.Push(ApplyItem{Commit: intake.CommittedEntries{Instance: 2,
		Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(2, "y"))}}})
	q.Push(ApplyItem{Due: true})
	cut := &wal.CompactedError{}
	require.False(t, q.Overtaken(cut))
	dropped := q.PushInstall(1, &protocol.Base{Index: 7})
	require.Len(t, dropped, 1)
	dropped[0].Drop(member.ErrResultUnknown)
	require.Equal(t, []string{"x unknown"}, got)
	require.NoError(t, q.Check(0))
	require.True(t, q.Overtaken(fmt.Errorf("load: %w", cut)))
	require.False(t, q.Overtaken(errors.New("another")))
	items := q.Take(nil)
	require.Len(t, items, 3)
	require.EqualValues(t, 2, items[0].Commit.Instance)
	require.EqualValues(t, 7, items[2].Install.Index)
	require.ErrorContains(t, q.Check(0), "wait by its count")
	q.Left(len(items[0].Commit.Entries[0].Payload), 10)
	q.Installed()
	require.NoError(t, q.Check(0))
	require.False(t, q.Installing())
	require.EqualValues(t, 10, q.Total())
	require.True(t, q.Empty())
}

package cluster

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

const later = format.First + 1

// The leader raises the format once, to the newest one that all members know. What is not known of a member counts as
// an earlier version.
func TestTheFormatIsRaisedOnceAllKnowIt(t *testing.T) {
	h, _ := handshakesOf(1)
	h.Newest = later + 1
	st := &protocol.Status{Role: protocol.Leader, Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2},
		{ID: 3, Learner: true}}}}
	known := map[protocol.MemberID]int{2: later}
	newest := func(id protocol.MemberID) int { return known[id] }
	require.Empty(t, h.raiseFormat(st, newest), "member 3 is away")
	known[3] = format.First
	require.Empty(t, h.raiseFormat(st, newest))
	known[3] = later + 1
	raise := []protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 1}, Format: later}}
	require.Equal(t, raise, h.raiseFormat(st, newest))
	require.Empty(t, h.raiseFormat(st, nil))

	next, reason := st.Config.Changed(raise)
	require.Equal(t, protocol.ReasonNone, reason)
	require.Equal(t, later, next.Format)
	st.Config = next
	require.Empty(t, h.raiseFormat(st, newest), "once")
	next, _ = next.Changed([]protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 1, Name: "a"},
		Format: format.First}})
	require.Equal(t, later, next.Format, "it never decreases")

	st.Role, st.Config.Format, h.Newest = protocol.Follower, 0, later
	require.Empty(t, h.raiseFormat(st, newest))
	st.Role, h.Newest = protocol.Leader, format.First
	require.Empty(t, h.raiseFormat(st, newest))
}

// A member writes a format once that is durable. It stops if it does not know the format.
func TestAFormatIsDurableBeforeItIsWritten(t *testing.T) {
	h, disk := handshakesOf(1)
	h.Newest = later
	c := &protocol.Config{Members: []protocol.Member{{ID: 1}}, Format: later}
	disk.err = &wal.FullError{}
	h.learnFormat(c)
	require.Equal(t, format.First, h.Format(), "the disk is full")
	require.NoError(t, disk.failed)
	disk.err = nil
	h.learnFormat(c)
	require.Equal(t, []int{later}, disk.formats)
	require.Equal(t, later, h.Format())
	require.Equal(t, later, h.Told().Format.Written)
	h.learnFormat(&protocol.Config{})
	require.Equal(t, later, h.Format())

	// A link with a member that writes a later format raises it, too.
	h.Newest = later + 1
	disk.err = &wal.FullError{}
	require.ErrorAs(t, h.Writes(later+1), new(*wal.FullError))
	require.Equal(t, later, h.Format())
	disk.err = nil
	require.NoError(t, h.Writes(later+1))
	require.Equal(t, []int{later, later + 1}, disk.formats)
	require.Equal(t, later+1, h.Told().Format.Written)
	require.ErrorAs(t, h.Writes(later+2), new(*FormatError))
	require.NoError(t, disk.failed, "another member is wrong")

	h, disk = handshakesOf(1)
	h.Newest = later
	h.Recover(&protocol.Config{}, false, later)
	require.Equal(t, later, h.Format(), "it was recorded before the restart")

	c.Format = later + 1
	h.learnFormat(c)
	require.ErrorAs(t, disk.failed, new(*FormatError))
	require.Equal(t, later, h.Format())

	h, disk = handshakesOf(1)
	h.Newest, disk.err, c.Format = later, errors.New("broken"), later
	h.learnFormat(c)
	require.EqualError(t, disk.failed, "broken")
}

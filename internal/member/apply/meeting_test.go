package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// crossing is derived from a log that meets those of others at each tenth entry.
type crossing struct{ tally }

func (c *crossing) Meets(e *protocol.Entry) bool { return e.Index%10 == 0 }

// TestSnapshotsWaitUntilMembersMeet: a snapshot that is due within what is applied at once stands where members meet,
// and the cores are asked once for such a place. Whoever asks for the state meanwhile gets that of the last snapshot.
func TestSnapshotsWaitUntilMembersMeet(t *testing.T) {
	world, meta := &notes{}, member.Meta{Cursor: order.Begin(1, false)}
	a := NewApplier(&membertest.History{}, meta, membertest.Session, 0, nil)
	require.NoError(t, a.Derive(func(protocol.Config) protocol.Derived { return &crossing{} }, &meta))
	p := NewApply(a, meta.Cursor, 1<<20, world)
	upTo := func(from, to protocol.Index) *ApplyItem {
		it := &ApplyItem{Commit: intake.CommittedEntries{Instance: 1}}
		for i := from; i <= to; i++ {
			it.Commit.Entries = append(it.Commit.Entries, membertest.EntryOf(i, membertest.Sealed(uint64(i), "x")))
		}
		return it
	}
	require.NoError(t, p.Do(upTo(1, 3)))
	require.True(t, p.Apart())
	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.NoError(t, p.Do(upTo(4, 8)))
	require.Empty(t, world.saved)
	require.Equal(t, 1, world.meets)
	require.NoError(t, p.Do(upTo(9, 23)))
	require.Len(t, world.saved, 1)
	require.EqualValues(t, 10, world.saved[0].Cursor.Points[0].Index)
	require.EqualValues(t, 23, p.Added(1), "the rest is applied, too")

	world.received = &received{Reader: strings.NewReader("the state at 10"), meta: world.saved[0]}
	var view StateView
	require.NoError(t, p.Do(&ApplyItem{View: func(v StateView) { view = v }}))
	require.NoError(t, view.Err)
	require.EqualValues(t, 10, view.Meta.Cursor.Points[0].Index)
	var out strings.Builder
	require.NoError(t, view.State.WriteTo(t.Context(), &out))
	require.Equal(t, "the state at 10", out.String())
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[0]}}))
	require.Equal(t, 2, world.meets, "who asked is to get a newer one next time")
	require.NoError(t, p.Do(upTo(24, 30)))
	require.False(t, p.Apart())
	require.Len(t, world.saved, 2)
	require.NoError(t, p.Do(&ApplyItem{View: func(v StateView) { view = v }}))
	require.EqualValues(t, 30, view.Meta.Cursor.Points[0].Index, "as it is now")
}

// TestWhatIsAppliedInPartsIsSettled: each batch of this member is told its result, wherever what was committed is
// split.
func TestWhatIsAppliedInPartsIsSettled(t *testing.T) {
	meta := member.Meta{Cursor: order.Begin(1, false)}
	a := NewApplier(&membertest.History{}, meta, membertest.Session, 0, nil)
	require.NoError(t, a.Derive(func(protocol.Config) protocol.Derived { return &crossing{} }, &meta))
	p := NewApply(a, meta.Cursor, 1<<20, &notes{})
	c, settled := intake.CommittedEntries{Instance: 1}, 0
	for i := protocol.Index(1); i <= 25; i++ {
		b := intake.NewBatch(0, 16, 1)
		b.Add([]byte("x"), func(_ any, err error) {
			require.NoError(t, err)
			settled++
		})
		b.Seal(membertest.Session, uint64(i), uint64(i))
		c.Entries = append(c.Entries, membertest.EntryOf(i, b))
		if i%3 == 0 {
			c.Own = append(c.Own, b)
		}
	}
	require.NoError(t, p.Do(&ApplyItem{Commit: c}))
	require.Equal(t, 8, settled)
	require.EqualValues(t, 25, p.Added(1))
}

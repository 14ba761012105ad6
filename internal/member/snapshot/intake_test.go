package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

func TestOneSnapshotIsTakenAtATime(t *testing.T) {
	at := func(round protocol.Round, one, two protocol.Index) order.Cursor {
		c := order.Begin(2, true)
		c.Next.Round = round
		c.Points[0].Index, c.Points[1].Index = one, two
		return c
	}
	var in SnapshotIntake
	have := at(10, 12, 12)
	first := member.SnapshotOffer{Meta: member.Meta{Cursor: at(100, 120, 121)}, Instance: 1, After: 90}
	second := member.SnapshotOffer{Meta: member.Meta{Cursor: at(104, 125, 126)}, Instance: 2, After: 95}
	require.Equal(t, IntakeTake, in.Offer(&have, false, &first))
	require.Equal(t, IntakeWait, in.Offer(&have, false, &second))
	in.Done(&first.Cursor)
	require.Equal(t, IntakeLog, in.Offer(&have, false, &second), "it is durable, though not applied yet")
	second.After = 122
	require.Equal(t, IntakeTake, in.Offer(&have, false, &second), "that log begins later")
	in.Done(nil)
	require.Equal(t, IntakeTake, in.Offer(&have, false, &second), "it did not come")
	in.Done(&second.Cursor)
	require.Equal(t, IntakeKnown, in.Offer(&have, false, &first))
	require.Equal(t, IntakeTake, in.Offer(&have, true, &first), "the state is damaged")
	in.Done(nil)
	unknown := member.SnapshotOffer{Meta: member.Meta{Cursor: at(200, 220, 220)}, Instance: 1}
	require.Equal(t, IntakeTake, in.Offer(&have, false, &unknown), "nobody said where the log begins")
	require.EqualValues(t, 5, in.Taken)
}

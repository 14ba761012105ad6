package apply

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// TestASnapshotJudgesTheSealsThatItPassed: another instance installed it, so the first one still has the seals in its
// log. If it is still the first one, they did not count. The snapshot says so, because the order does not come to them.
func TestASnapshotJudgesTheSealsThatItPassed(t *testing.T) {
	at := func(round protocol.Round, position protocol.Position, ids ...protocol.InstanceID) *member.Meta {
		m := &member.Meta{Cursor: order.Cursor{Position: position, Next: order.Slot{Round: round, Instance: ids[0]}}}
		for i, id := range ids {
			m.Cursor.Points = append(m.Cursor.Points, order.Point{Instance: id, Index: protocol.Index(round), Term: 1})
			if i > 0 {
				m.Others = append(m.Others, protocol.Config{})
			}
		}
		return m
	}
	p := NewPlanner(at(0, 0, 3, 4))
	p.Follow(at(8, 16, 3, 4))
	require.Equal(t, []VoidSeal{{Instance: 3, Index: 8}}, p.TakeVoid())
	p.Follow(at(9, 18, 3, 4, 5))
	require.Equal(t, []VoidSeal{{Instance: 3, Index: 9}}, p.TakeVoid())
	p.Follow(at(2, 22, 6))
	require.Empty(t, p.TakeVoid(), "one of the seals counted")
}

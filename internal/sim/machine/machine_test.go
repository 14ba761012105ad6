package machine

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// one is a state machine of a member, and the errors that it reports.
func one(orders *Orders, id protocol.MemberID) (*Machine, *[]error) {
	errs := &[]error{}
	return New(Config{
		Member: id, Orders: orders,
		Applied: func(int, protocol.Position, Answer) {}, Dropped: func(protocol.Position, protocol.BodyRef) {},
		Violate: func(err error) {
			if err != nil {
				*errs = append(*errs, err)
			}
		},
	}), errs
}

func write(number int, kind check.Kind, key, value string) []member.Command {
	op := check.Operation{Kind: kind, Key: key, Value: value}
	return []member.Command{{Position: protocol.Position(number + 1), Data: Command(number, op, 7)}}
}

func TestSnapshotsHaveTheState(t *testing.T) {
	for _, orders := range []*Orders{{Keys: 2}, {ByKey: true, Keys: 2}} {
		a, errs := one(orders, 1)
		require.NoError(t, a.Apply(write(0, check.Put, "k0", "x")))
		require.NoError(t, a.Apply(write(1, check.Append, "k0", "y")))
		require.NoError(t, a.Apply(write(2, check.Delete, "k1", "")))
		view, err := a.Snapshot()
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, view.WriteTo(context.Background(), &text))

		b, _ := one(orders, 2)
		require.True(t, orders.ByKey == (&Set{Groups: []*Machine{b}}).Behind())
		require.NoError(t, b.Restore(&text))
		require.False(t, (&Set{Groups: []*Machine{b}}).Behind())
		require.Equal(t, Value{Text: "xy", Found: true, Version: 2, chain: b.Value("k0").chain}, b.Value("k0"))
		require.Equal(t, a.Position(), b.Position())
		require.NoError(t, (&Set{Groups: []*Machine{b}}).Same(&Set{Groups: []*Machine{a}}))
		require.Empty(t, *errs)
	}
}

func TestMembersApplyTheSame(t *testing.T) {
	var orders Orders
	a, _ := one(&orders, 1)
	b, errs := one(&orders, 2)
	require.NoError(t, a.Apply(write(0, check.Put, "k0", "x")))
	require.Error(t, b.Apply(write(0, check.Put, "k0", "y")))
	require.Len(t, *errs, 1)
}

func TestGroupsOfKeys(t *testing.T) {
	orders := Orders{Groups: 3}
	seen := map[protocol.InstanceID]bool{}
	for i := range 50 {
		seen[orders.Of(KeyName(i))] = true
	}
	require.Equal(t, map[protocol.InstanceID]bool{1: true, 2: true, 3: true}, seen)
	s, errs := one(&orders, 1)
	s.c.Group = orders.GroupOf("k0")%3 + 1
	require.ErrorContains(t, s.Apply(write(0, check.Put, "k0", "x")), "its group is")
	require.Len(t, *errs, 1)
}

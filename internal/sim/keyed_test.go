package sim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// keyedStage is three members with two groups: member 1 leads the first one and member 2 the other.
func keyedStage(t *testing.T, mutant string) *script {
	s := newStage(t, 3, mutant, func(set *fault.Settings) {
		set.Protocol, set.Keyed, set.Instances, set.Keys = registry.Find("multi-raft"), true, 2, 4
		set.SnapshotBytes = 2000
	})
	s.lead(1, 2)
	return s
}

// write starts a write in a group at a member and returns at once.
func (s *script) write(id protocol.MemberID, group protocol.InstanceID) *history.Operation {
	key := ""
	for i := 0; key == "" || s.Orders.GroupOf(key) != group; i++ {
		key = machine.KeyName(i)
	}
	op := &history.Operation{Operation: check.Operation{Kind: check.Put, Key: key, Value: fmt.Sprintf("%d,", len(s.History.Ops))}}
	s.ask(id, op)
	return op
}

// crossed: each of two members needs entries that the other one has cut in a group, and the third one, which has
// both, is lost. Each receives the state of the group in which it is behind, and keeps that of the other.
func crossed(s *script) {
	lost := map[protocol.InstanceID]protocol.MemberID{1: 2, 2: 1}
	s.Pass = func(m *protocol.Message) bool { return m.To != lost[m.Instance] && m.From != lost[m.Instance] }
	cut := func(group protocol.InstanceID) bool {
		leader := s.Member(protocol.MemberID(group)).Of(group)
		return leader.Inst.Core().Status().First > s.Member(lost[group]).Of(group).Last()+1
	}
	for !cut(1) || !cut(2) {
		s.mustAck(s.write(1, 1))
		s.mustAck(s.write(2, 2))
		if s.Broken != nil {
			return
		}
	}
	s.crash(3)
	s.Member(3).Gone = true
	s.Pass = nil
	for _, id := range []protocol.MemberID{1, 2} {
		s.mustAck(s.write(id, 1))
		s.mustAck(s.write(id, 2))
	}
}

func TestGroupsTakeOverFromEachOther(t *testing.T) {
	s := keyedStage(t, "")
	crossed(s)
	s.passes()
	require.Positive(t, s.Events.Of(node.SnapshotsInstalled))
}

func TestAWholeSnapshotLosesWrites(t *testing.T) {
	s := keyedStage(t, string(member.MutantWholeSnapshot))
	crossed(s)
	require.NotNil(t, s.end())
}

// TestGroupsDoNotWaitForEachOther: a group without a leader delays only its own writes.
func TestGroupsDoNotWaitForEachOther(t *testing.T) {
	s := keyedStage(t, "")
	s.onlyIn(2, func(*protocol.Message) bool { return false })
	held := s.write(1, 2)
	for range 5 {
		s.mustAck(s.write(3, 1))
	}
	require.False(t, s.acked(held))
	s.Pass = nil
	s.mustAck(held)
	s.passes()
}

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// spoil damages the body at an index on a member's disk.
func (s *script) spoil(id protocol.MemberID, i protocol.Index) {
	s.t.Helper()
	m := s.Member(id)
	b, err := m.Body.Store.Read(uint32(node.FirstInstance), uint64(i))
	require.NoError(s.t, err)
	for !m.Disk.Spoil(node.BodyDir, b.Bytes, s.Rand) {
		s.mustAck(s.putBody(s.Leader().ID)) // the last synced data must not be damaged
		s.wait(0.1)
	}
	s.Court.First.Bodies.Damage(uint64(id), uint64(i))
}

// TestDamagedRowAndDamagedWhole: members detect damaged bytes when they read them, send them to no one, and restore
// them. Reads succeed without them.
func TestDamagedRowAndDamagedWhole(t *testing.T) {
	s := craftStage(t, 5, 3)
	s.settled()
	op := s.putBody(1)
	s.mustAck(op)
	s.wait(1)
	i := s.machineBodies(1)[0].Index
	require.Equal(t, check.WholeBody, s.form(1, i))
	s.spoil(1, i) // the only whole copy
	s.readable(1, 2)
	s.spoil(3, i)
	require.True(t, fault.Recoverable(s.World, s.Except(nil)))
	s.readable(3, 4)
	s.Member(1).ScrubLater(s.Set.Election)
	s.Member(3).ScrubLater(s.Set.Election)
	s.until("both are restored", func() bool {
		return s.Court.First.Bodies.Holds(1, uint64(i)) == check.WholeBody && s.Court.First.Bodies.Holds(3, uint64(i)) == check.RowForm(2)
	})
	s.crash(2, 4)
	s.readable(1, 3, 5)
	s.start(2, 4)
	s.passes()
}

// TestAScrubFindsDamageAfterARestart: a member has a damaged form of a committed body, and restarts. A scrub detects
// the damage, and the form is restored.
func TestAScrubFindsDamageAfterARestart(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	s.mustAck(s.putBody(1))
	s.mustAck(s.put(1))
	s.wait(2) // the commit index is durable on all members
	i := s.machineBodies(1)[0].Index
	s.spoil(4, i)
	s.crash(4)
	s.start(4)
	s.wait(0.2)
	s.Member(4).ScrubLater(s.Set.Election)
	s.until("restored", func() bool { return s.Court.First.Bodies.Holds(4, uint64(i)) == check.RowForm(3) })
	s.crash(1, 2)
	s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up && m.ID > 2 })
	s.readable(4)
	s.start(1, 2)
	s.passes()
}

// change requests a change of the leader until it is made.
func (s *script) change(what string, done func(*protocol.Config) bool, changes ...protocol.Change) {
	s.t.Helper()
	s.until(what, func() bool {
		m := s.Leader()
		if m == nil {
			return false
		}
		c := m.Applier.Config()
		if !c.Joint() && done(&c) {
			return true
		}
		changeAt(m, changes, func(err error) { s.Tracef("refused: %v", err) })
		s.wait(1)
		return false
	})
}

func (s *script) remove(id protocol.MemberID) {
	s.t.Helper()
	s.change(fmt.Sprintf("%s is removed", id), func(c *protocol.Config) bool { return c.Find(id) == nil },
		protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id}})
}

// add brings in a new member, first as a learner and then as a voter.
func (s *script) add() protocol.MemberID {
	s.t.Helper()
	added := fault.AddMember(s.World)
	s.change("the learner is let in", func(c *protocol.Config) bool { return c.Find(added.ID) != nil },
		protocol.Change{Kind: protocol.AddLearner, Member: added})
	s.change("it votes", func(c *protocol.Config) bool { m := c.Find(added.ID); return m != nil && !m.Learner },
		protocol.Change{Kind: protocol.AddVoter, Member: added})
	return added.ID
}

// TestReplaceAMemberThatHeldRows: a member is lost forever, and the leader restarts during the change. The new member
// has rows of its own before it votes.
func TestReplaceAMemberThatHeldRows(t *testing.T) {
	s := newStage(t, 5, "", func(set *fault.Settings) { coded(2)(set); set.SnapshotBytes = 3000 })
	s.settled()
	for range 12 {
		s.mustAck(s.putBody(1))
	}
	s.crash(3) // forever
	s.Member(3).Gone = true
	added := fault.AddMember(s.World)
	s.change("the learner is let in", func(c *protocol.Config) bool { return c.Find(added.ID) != nil },
		protocol.Change{Kind: protocol.AddLearner, Member: added})
	s.crash(1)
	s.start(1)
	s.change("the new member is in the place of the old one",
		func(c *protocol.Config) bool { return c.Find(3) == nil && c.Voter(added.ID) },
		protocol.Change{Kind: protocol.AddVoter, Member: added}, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}})
	for _, ref := range s.machineBodies(2) {
		require.Equal(t, check.RowForm(5), s.form(added.ID, ref.Index), "a slot that nobody had")
	}
	s.crash(1, 2)
	s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up })
	s.readable(4, 5, added.ID)
	s.start(1, 2)
	s.passes()
}

// TestShrinkAndGrow: 5→4→3→4→5 with coded bodies in the log and in the state.
func TestShrinkAndGrow(t *testing.T) {
	for _, snapshots := range []int{1 << 30, 2000} {
		s := newStage(t, 5, "", func(set *fault.Settings) { coded(2)(set); set.SnapshotBytes = snapshots })
		s.settled()
		writes := func() {
			for range 4 {
				s.mustAck(s.putBody(s.Leader().ID))
			}
		}
		writes()
		s.remove(5)
		writes()
		s.remove(4)
		writes()
		a := s.add()
		writes()
		b := s.add()
		s.wait(3) // coding begins again
		writes()
		refs := s.machineBodies(s.Leader().ID)
		require.Equal(t, uint8(2), refs[len(refs)-1].K)
		s.until("the leader is one of the old members", func() bool { m := s.Leader(); return m != nil && m.ID <= 3 })
		s.crash(s.Leader().ID)
		s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up })
		s.readable(a, b)
		s.passes()
	}
}

// TestRestripe: with k = 3 of five members, rows do not suffice for three members. The remaining members make whole
// copies first. The whole copies survive a restart of all, the scrub that trims, and the loss of a member. With four
// members again, new bodies are coded with k = 3.
func TestRestripe(t *testing.T) {
	for _, snapshots := range []int{1 << 30, 500} {
		s := newStage(t, 5, "", func(set *fault.Settings) { coded(3)(set); set.SnapshotBytes, set.Bodies.Scrub = snapshots, time.Second })
		s.settled()
		for range 3 {
			s.mustAck(s.putBody(1))
		}
		old := s.machineBodies(1)
		require.Equal(t, uint8(3), old[2].K)
		s.remove(5)
		s.remove(4)
		s.until("whole copies", func() bool { return !s.Member(2).Lacks() && !s.Member(3).Lacks() })
		s.mustAck(s.putBody(1))
		s.crash(1, 2, 3)
		s.start(1, 2, 3)
		s.wait(3) // some scrubs
		for _, ref := range old {
			for id := protocol.MemberID(1); id <= 3; id++ {
				require.Equal(t, check.WholeBody, s.form(id, ref.Index))
			}
		}
		s.crash(1)
		s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up })
		s.readable(2, 3)
		s.Member(1).Gone = true
		a := fault.AddMember(s.World)
		s.change("the learner is let in", func(c *protocol.Config) bool { return c.Find(a.ID) != nil },
			protocol.Change{Kind: protocol.AddLearner, Member: a})
		s.change("the new member is in the place of the old one",
			func(c *protocol.Config) bool { return c.Find(1) == nil && c.Voter(a.ID) },
			protocol.Change{Kind: protocol.AddVoter, Member: a}, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 1}})
		for _, ref := range old {
			require.Equal(t, check.WholeBody, s.form(a.ID, ref.Index))
		}
		b := s.add()
		s.wait(3)
		s.mustAck(s.putBody(s.Leader().ID))
		refs := s.machineBodies(s.Leader().ID)
		require.Equal(t, uint8(3), refs[len(refs)-1].K)
		s.readable(2, 3, a.ID, b)
		s.passes()
	}
}

// TestShrinkAtOnce: seven members become three in one step, and the four leaving members do not help. A leader that
// is elected during the change continues it.
func TestShrinkAtOnce(t *testing.T) {
	s := newStage(t, 7, "", coded(4))
	s.settled()
	for range 5 {
		s.mustAck(s.putBody(1))
	}
	require.Equal(t, uint8(4), s.machineBodies(1)[0].K)
	var leave []protocol.Change
	for id := protocol.MemberID(4); id <= 7; id++ {
		leave = append(leave, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id}})
	}
	s.without(protocol.MsgFetchResp)
	refused := error(nil)
	for range 5 {
		changeAt(s.Leader(), leave, func(err error) { refused = err })
		s.wait(1)
	}
	require.ErrorContains(t, refused, protocol.ReasonRestriping.String())
	require.Equal(t, 1, s.Leader().Inst.Core().Status().Restriping)
	s.mustAck(s.putBody(1)) // meanwhile k is smaller
	refs := s.machineBodies(1)
	require.Equal(t, uint8(2), refs[len(refs)-1].K)
	s.crash(1)
	s.Pass = nil
	s.elect(2)
	s.change("they leave", func(c *protocol.Config) bool { return len(c.Members) == 3 }, leave...)
	s.crash(4, 5, 6, 7)
	s.readable(2, 3)
	s.start(1)
	s.until("the third has whole copies", func() bool { return !s.Member(1).Behind() && !s.Member(1).Lacks() })
	s.crash(2)
	s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up })
	s.readable(1, 3)
	s.start(2)
	s.passes()
}

// TestGivenUpRestripe: the operator does not retry the change. After a while bodies are coded with the old k, and
// whole copies are trimmed.
func TestGivenUpRestripe(t *testing.T) {
	s := newStage(t, 5, "", func(set *fault.Settings) { coded(3)(set); set.Bodies.Scrub, set.SnapshotBytes = time.Second, 500 })
	s.settled()
	s.mustAck(s.putBody(1))
	s.wait(1)
	leave := []protocol.Change{
		{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 4}}, {Kind: protocol.RemoveMember, Member: protocol.Member{ID: 5}},
	}
	changeAt(s.Member(1), leave, func(error) {})
	i := s.machineBodies(1)[0].Index
	s.until("they make whole copies", func() bool { return s.form(2, i) == check.WholeBody && s.form(3, i) == check.WholeBody })
	s.mustAck(s.putBody(1))
	require.Equal(t, uint8(2), s.machineBodies(1)[1].K)
	s.until("as before", func() bool { return s.Leader().Inst.Core().Status().K == 3 })
	for range 10 { // so that the log is cut: only then are these bodies trimmed
		s.mustAck(s.put(1))
	}
	s.until("trimmed", func() bool { return s.form(2, i) == check.RowForm(1) && s.form(3, i) == check.RowForm(2) })
	s.readable(4)
	s.passes()
}

// TestJointChangeAndPreparation: the leader does not know that coded entries are committed. Its log has a joint
// configuration after them.
func TestJointChangeAndPreparation(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	added := fault.AddMember(s.World)
	s.change("the learner is let in", func(c *protocol.Config) bool { return c.Find(added.ID) != nil },
		protocol.Change{Kind: protocol.AddLearner, Member: added})
	s.wait(3)
	lead := s.Leader().ID
	require.Equal(t, protocol.MemberID(1), lead)
	s.mustAck(s.putBody(1))
	i := s.machineBodies(1)[0].Index
	s.wait(2)
	// Nothing more is committed.
	s.Pass = func(m *protocol.Message) bool { return m.Type != message.AppendResp || m.From == 2 }
	changeAt(s.Member(1), []protocol.Change{
		{Kind: protocol.AddVoter, Member: added}, {Kind: protocol.RemoveMember, Member: protocol.Member{ID: 5}},
	}, func(err error) { s.Tracef("refused: %v", err) })
	s.until("2 has the joint configuration", func() bool { c := s.Member(2).Inst.Core().Status().Config; return c.Joint() })
	s.crash(1)
	s.Pass = nil
	s.elect(2)
	s.until("2 goes on", func() bool { return s.commit(2) > i })
	s.readable(2, 3)
	s.start(1)
	s.passes()
}

// TestInstallInterruptedInBackfill: a member has installed a snapshot, but has few of the bodies that it references.
// Then it stops, and F others stop too.
func TestInstallInterruptedInBackfill(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := newStage(t, 5, "", func(set *fault.Settings) { coded(2)(set); set.SnapshotBytes, set.Durable = 2000, own })
		s.settled()
		s.split(5)
		for range 25 {
			s.mustAck(s.putBody(1))
		}
		require.Greater(t, s.Member(1).Inst.Core().Status().First, s.last(5)+1, "the log was not cut")
		restored := 0
		s.Pass = func(m *protocol.Message) bool {
			if m.Type == protocol.MsgFetchResp && m.To == 5 {
				restored++
				return restored < 5
			}
			return true
		}
		fault.HealLinks(s.World)
		s.until("5 has the snapshot", func() bool { return !s.Member(5).Behind() })
		s.wait(1)
		require.True(t, s.Member(5).Lacks())
		s.crash(5)
		s.Pass = nil
		s.crash(1, 2)
		s.start(5)
		s.until("5 holds its part of everything", func() bool { return !s.Member(5).Lacks() && !s.Member(5).Behind() })
		s.readable(3, 5)
		for _, ref := range s.machineBodies(5) {
			require.NotEqual(t, check.NoBody, s.form(5, ref.Index))
		}
		s.start(1, 2)
		s.passes()
	}
}

// TestTransferWhileUpgrading: a leader transfers leadership while whole copies are in flight.
func TestTransferWhileUpgrading(t *testing.T) {
	s := craftStage(t, 5, 3)
	s.settled()
	s.split(1, 2, 3)
	s.without(message.Bodies)
	var ops []*history.Operation
	for range 3 {
		ops = append(ops, s.putBody(1))
	}
	s.wait(0.5)
	s.Member(1).Step(protocol.Transfer{To: 2})
	s.wait(0.2)
	s.Pass = nil
	for _, op := range ops {
		s.mustAck(op)
	}
	s.until("3 leads", func() bool {
		if m := s.Leader(); m != nil {
			m.Step(protocol.Transfer{To: 3})
		}
		s.wait(0.5)
		return roleOf(s.Member(3)) == protocol.Leader
	})
	fault.HealLinks(s.World)
	s.passes()
}

// TestSwapUnderFailover: two operations swap the same value, which is stored as fragments, and the leader changes
// meanwhile. Exactly one of them succeeds.
func TestSwapUnderFailover(t *testing.T) {
	for _, upto := range []float64{0.002, 0.01, 0.02, 0.1} {
		s := craftStage(t, 5, 2)
		s.settled()
		s.mustAck(s.putBody(1))
		s.readable(2)
		swap := func(id protocol.MemberID) *history.Operation {
			op := &history.Operation{Operation: check.Operation{Kind: check.Swap, Key: "k0", Expect: s.client.Seen}, Raw: s.client.Raw}
			op.Carry(len(s.History.Ops), s.World.Clients.DrawBody())
			s.client.Perform(s.Member(id), op, 0, func() {})
			return op
		}
		first, second := swap(2), swap(3)
		s.wait(upto)
		s.crash(1)
		s.until("another leader", func() bool { m := s.Leader(); return m != nil && m.Up })
		s.until("both took effect", func() bool { return first.Effective && second.Effective })
		require.NotEqual(t, first.Answer.Done, second.Answer.Done)
		s.readable(4, 5)
		s.start(1)
		s.passes()
	}
}

// TestOverwrittenWhileAMemberIsAway: a member comes back, and its log still names bodies that no state references any
// more. Those bodies are then deleted on all members.
func TestOverwrittenWhileAMemberIsAway(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { coded(2)(set); set.SnapshotBytes = 1500 })
	s.settled()
	for range 3 {
		s.mustAck(s.putBody(1))
	}
	s.wait(1)
	old := s.machineBodies(3)
	require.NotEmpty(t, old)
	s.crash(3)
	s.mustAck(s.writeBody(1, check.Put))
	for range 30 {
		s.mustAck(s.put(1))
	}
	s.wait(2)
	for _, ref := range old {
		require.Equal(t, check.NoBody, s.form(1, ref.Index), "not released")
	}
	s.start(3)
	s.until("3 is up to date", func() bool { return !s.Member(3).Behind() && !s.Member(3).Lacks() })
	for _, ref := range old {
		require.Equal(t, check.NoBody, s.form(3, ref.Index))
	}
	s.readable(3)
	s.passes()
}

// TestDamagedWholeThatCounts: three whole copies made an entry durable. When one of them is damaged, it is restored
// as a whole copy. With a row instead there would be two whole copies and one row, which do not suffice.
func TestDamagedWholeThatCounts(t *testing.T) {
	s := craftStage(t, 5, 2)
	damagedWhole(s)
	s.passes()
}

func damagedWhole(s *script) {
	s.settled()
	s.split(1, 2, 3)
	s.mustAck(s.putBody(1))
	i := s.machineBodies(1)[0].Index
	s.mustAck(s.put(1))
	s.wait(1)
	s.spoil(2, i)
	s.Member(2).ScrubLater(s.Set.Election)
	s.until("restored", func() bool { return s.Court.First.Bodies.Holds(2, uint64(i)) == check.WholeBody })
}

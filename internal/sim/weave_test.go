package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// The scenarios of docs/internals/niagara.md, 3.8, step by step.

// woven sets three merged instances.
func woven(s *fault.Settings) { s.Instances = 3 }

func weaveStage(t *testing.T, nodes int, tweaks ...func(*fault.Settings)) *script {
	return newStage(t, nodes, "", func(s *fault.Settings) {
		woven(s)
		for _, tweak := range tweaks {
			tweak(s)
		}
	})
}

// lead makes the given members leaders: the first one of instance 1, the second one of instance 2, and so on.
func (s *script) lead(ids ...protocol.MemberID) {
	s.t.Helper()
	for i, id := range ids {
		s.electIn(protocol.InstanceID(i+1), id)
	}
	s.wait(1)
	s.until("the membership names everybody's log", func() bool {
		for _, m := range s.Members {
			for _, k := range m.InForce {
				config := k.Inst.Core().Status().Config
				if slices.ContainsFunc(config.Members, func(m protocol.Member) bool { return m.Log.IsZero() }) {
					return false
				}
			}
		}
		return true
	})
	s.wait(0.5)
}

// electIn waits until a member leads an instance. Meanwhile only that member can campaign there.
func (s *script) electIn(instance protocol.InstanceID, id protocol.MemberID) {
	s.t.Helper()
	before := s.Pass
	s.Pass = func(m *protocol.Message) bool {
		if m.Instance == instance && (m.Type == message.PreVote || m.Type == message.Vote) && m.From != id {
			return false
		}
		return before == nil || before(m)
	}
	s.until(fmt.Sprintf("%s leads instance %d", id, instance), func() bool {
		if l := s.LeaderOf(instance); l != nil && l.ID != id {
			l.Of(instance).Step(protocol.Transfer{To: id})
		}
		return s.leads(id, instance)
	})
	s.Pass = before
}

func (s *script) leads(id protocol.MemberID, instance protocol.InstanceID) bool {
	return s.Member(id).Up && s.Member(id).Of(instance).Leads()
}

// putIn starts a write through an instance at a member and returns at once.
func (s *script) putIn(instance protocol.InstanceID, id protocol.MemberID) *history.Operation {
	s.Route = instance
	op := s.put(id)
	s.Route = 0
	return op
}

// took returns the time from now until an operation is acknowledged.
func (s *script) took(op *history.Operation) time.Duration {
	s.t.Helper()
	began := s.Now()
	for !s.acked(op) && s.Now() < began+time.Minute && s.Broken == nil {
		s.Run(s.Now() + 100*time.Microsecond)
	}
	return s.Now() - began
}

// onlyIn drops all messages of an instance for which pass is false.
func (s *script) onlyIn(instance protocol.InstanceID, pass func(*protocol.Message) bool) {
	s.Pass = func(m *protocol.Message) bool { return m.Instance != instance || pass(m) }
}

// stuck writes until a write waits for the slot of an instance that decides nothing. Earlier writes may first use
// slots before that one.
func (s *script) stuck(write func() *history.Operation) *history.Operation {
	s.t.Helper()
	for range 5 {
		op := write()
		if s.wait(0.2); !s.acked(op) {
			return op
		}
	}
	require.Fail(s.t, "every write is acknowledged")
	return nil
}

func (s *script) skips(id protocol.MemberID, instance protocol.InstanceID) uint64 {
	return s.Member(id).Of(instance).Inst.Skips()
}

// TestIdleAndOneWrite: one write, through any instance, takes no longer than with a single instance. It needs the
// disks of its leader and of one follower, and the skips need no additional time.
func TestIdleAndOneWrite(t *testing.T) {
	for _, c := range []struct {
		name    string
		leaders []protocol.MemberID
		most    time.Duration
	}{
		// Two hops and two syncs. One sync waits for the previous one.
		{"together", []protocol.MemberID{1, 1, 1}, 9 * time.Millisecond},
		// The other leaders learn of the write from its append: one more hop, and one more sync.
		{"spread", []protocol.MemberID{1, 2, 3}, 14 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := weaveStage(t, 3)
			s.lead(c.leaders...)
			for _, instance := range []protocol.InstanceID{1, 3, 2, 1} {
				s.wait(2) // idle
				took := s.took(s.putIn(instance, c.leaders[instance-1]))
				require.LessOrEqual(t, took, c.most, "through instance %d", instance)
			}
			s.passes()
		})
	}
}

// TestIdleInstancesSkipAhead: while one instance works, the others skip once for many of its
// batches.
func TestIdleInstancesSkipAhead(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 1, 1)
	for range 100 {
		s.mustAck(s.putIn(2, 1))
	}
	require.Less(t, s.skips(1, 1), uint64(10))
	require.Less(t, s.skips(1, 3), uint64(10))
	s.passes()
}

// TestSkipsRaceCommands: all instances have commands, sequentially and concurrently. Meanwhile instances skip for
// each other.
func TestSkipsRaceCommands(t *testing.T) {
	for _, leaders := range [][]protocol.MemberID{{1, 1, 1}, {1, 2, 3}} {
		s := weaveStage(t, 3)
		s.lead(leaders...)
		var ops []*history.Operation
		for n := range 60 {
			instance := protocol.InstanceID(1 + n%3)
			ops = append(ops, s.putIn(instance, leaders[instance-1]))
			if n%7 == 0 {
				ops = append(ops, s.putIn(1+instance%3, 3))
			}
			s.Run(s.Now() + time.Duration(n%5)*time.Millisecond)
		}
		for _, op := range ops {
			s.mustAck(op)
		}
		s.passes()
	}
}

// TestSkipOfAnOldLeader: the next leader has the old leader's skip in its log. It commits that
// skip, and does not skip again.
func TestSkipOfAnOldLeader(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 2, 3)
	s.mustAck(s.putIn(2, 2)) // it has skipped no further
	s.onlyIn(2, func(m *protocol.Message) bool { return m.To != 2 })
	var two, three uint64
	op := s.stuck(func() *history.Operation {
		two, three = s.skips(2, 2), s.skips(3, 2)
		return s.putIn(3, 3)
	})
	require.Equal(t, two+1, s.skips(2, 2))
	s.crash(2)
	s.Pass = nil
	s.electIn(2, 3)
	s.mustAck(op)
	require.Equal(t, three, s.skips(3, 2))
	s.start(2)
	s.mustAck(s.putIn(3, 2))
	s.passes()
}

// TestSkipInATruncatedSuffix: a skip reached no other member. Another leader's skip replaces it.
func TestSkipInATruncatedSuffix(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 2, 3)
	s.onlyIn(2, func(m *protocol.Message) bool { return m.From != 2 })
	op := s.putIn(3, 3)
	s.wait(0.1)
	lost := s.Member(2).Of(2).Inst.Tail().Round()
	require.Positive(t, lost)
	s.until("another one leads", func() bool { l := s.LeaderOf(2); return l != nil && l.ID != 2 })
	s.mustAck(op)
	s.Pass = nil
	s.wait(2)
	for range 3 {
		s.mustAck(s.putIn(2, 2))
	}
	s.passes()
}

// TestOneLeaderIsolated: commands of the other instances are committed. They are applied as soon as
// the isolated leader's instance has another leader.
func TestOneLeaderIsolated(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 2, 3)
	s.split(3)
	var b *history.Operation
	a := s.stuck(func() *history.Operation { // instance 3 has not filled its slot
		a := s.putIn(1, 1)
		b = s.putIn(2, 2)
		return a
	})
	require.GreaterOrEqual(t, uint64(s.Member(1).Applier.Added(1)), s.Court.Weave.Wanted(1))
	require.LessOrEqual(t, s.took(a)+s.took(b), 3*stageElection)
	s.mustAck(s.putIn(1, 2))
	fault.HealLinks(s.World)
	s.wait(1)
	require.False(t, s.leads(3, 3))
	s.passes()
}

// TestAllLeadersOnTheCrashedMember: one member leads all instances, and it stops. All elections run at once, and then
// the preferred leaders lead again.
func TestAllLeadersOnTheCrashedMember(t *testing.T) {
	for _, leaders := range []protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny} {
		s := weaveStage(t, 3, func(set *fault.Settings) { set.Core.Leaders = leaders })
		s.until("all instances have leaders", func() bool { return s.LeaderOf(1) != nil && s.LeaderOf(2) != nil && s.LeaderOf(3) != nil })
		first := s.LeaderOf(1).ID
		if leaders == protocol.LeadersTogether {
			s.until("one leads all", func() bool { return s.leads(first, 2) && s.leads(first, 3) })
		}
		s.mustAck(s.put(first))
		s.crash(first)
		other := 1 + first%3
		require.LessOrEqual(t, s.took(s.put(other)), 4*stageElection)
		if leaders == protocol.LeadersTogether {
			s.until("one leads all", func() bool {
				l := s.LeaderOf(1)
				return l != nil && l.ID != first && s.leads(l.ID, 2) && s.leads(l.ID, 3)
			})
		}
		s.start(first)
		if leaders == protocol.LeadersSpread {
			s.until("everybody leads one", func() bool { return s.leads(1, 1) && s.leads(2, 2) && s.leads(3, 3) })
		}
		s.mustAck(s.put(first))
		s.passes()
	}
}

// TestReadDuringAStall: a read needs the leader of one instance, that with the fewest rounds, and waits for it, even if
// the read's key is not affected by it. Others may have no leader. A leader that is cut off confirms no read index for
// its instance.
func TestReadDuringAStall(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 2, 3)
	s.mustAck(s.putIn(1, 1))
	s.wait(0.1)
	s.crash(3)
	read := s.get(1)
	s.wait(0.5)
	require.Zero(t, s.LeaderOf(3))
	require.True(t, s.acked(read))
	s.start(3)
	s.wait(2)

	s.electIn(3, 3)
	s.mustAck(s.putIn(3, 3))
	s.wait(0.1)
	s.crash(3)
	read = s.get(1)
	s.wait(0.5)
	require.False(t, s.acked(read))
	s.mustAck(read)
	s.start(3)
	s.wait(2)

	s.electIn(1, 1)
	s.electIn(2, 2)
	s.split(1)
	stale := s.get(1)
	s.until("another one leads", func() bool { l := s.LeaderOf(1); return l != nil && l.ID != 1 })
	s.mustAck(s.putIn(1, 2))
	s.wait(2)
	require.False(t, s.acked(stale))
	fault.HealLinks(s.World)
	s.mustAck(stale)
	s.passes()
}

// TestElectionsAtDifferentIndexes: the entries that leaders append for themselves fill no slots, at
// whatever index they are.
func TestElectionsAtDifferentIndexes(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 1, 1)
	for round := range 6 {
		instance := protocol.InstanceID(1 + round%3)
		for n := range round {
			s.putIn(protocol.InstanceID(1+n%3), 1)
		}
		s.electIn(instance, protocol.MemberID(1+(round+1)%3))
		s.mustAck(s.putIn(1+instance%3, 2))
	}
	s.passes()
}

// TestCrashBetweenSnapshotAndCuts: a snapshot is created in the middle of a skip, and three logs are cut. The member
// loses power at each of the writes for that.
func TestCrashBetweenSnapshotAndCuts(t *testing.T) {
	for write := 1; write <= 24; write++ {
		s := weaveStage(t, 3, func(set *fault.Settings) { set.SegmentBytes = 4 << 10 })
		s.lead(1, 1, 1)
		for range 20 {
			s.mustAck(s.putIn(2, 1))
		}
		m := s.Member(3)
		s.until("all is applied", func() bool { return !m.Behind() })
		at := m.Applier.Cursor()
		require.Less(t, at.Points[0].Index, m.Applier.Added(1), "instance 1 is in the middle of a skip")
		require.Positive(t, at.Points[0].Round)
		m.Disk.PowerAt = write
		m.Push(apply.ApplyItem{Due: true})
		s.wait(0.2)
		m.Disk.PowerAt = 0
		if m.Up {
			s.crash(3)
		}
		s.start(3)
		s.mustAck(s.putIn(3, 3))
		s.crash(1)
		s.mustAck(s.putIn(1, 3))
		s.start(1)
		s.passes()
	}
}

// TestBehindInOneInstance: a member gets nothing of one instance until the others have cut its log. The snapshot that
// it then gets is for all instances, including those in which the member is ahead.
func TestBehindInOneInstance(t *testing.T) {
	for behind := protocol.InstanceID(1); behind <= 3; behind++ {
		s := weaveStage(t, 3, func(set *fault.Settings) { set.SnapshotBytes = 2000 })
		s.lead(1, 1, 1)
		s.onlyIn(behind, func(m *protocol.Message) bool { return m.To != 3 })
		for n := range 80 {
			s.mustAck(s.putIn(protocol.InstanceID(1+n%3), 1))
		}
		late := s.last(3)
		if behind != 1 {
			require.Equal(t, s.last(1), late)
		}
		s.until("the log is cut", func() bool {
			return s.Member(1).Of(behind).Inst.Core().Status().First > s.Member(3).Of(behind).Inst.Core().Status().Last+1
		})
		s.crash(2) // a commit now needs 3
		s.Pass = nil
		installs := s.Events.Of(node.SnapshotsInstalled)
		s.until("a snapshot is installed", func() bool { return s.Events.Of(node.SnapshotsInstalled) > installs })
		s.mustAck(s.putIn(2, 3))
		s.start(2)
		s.passes()
	}
}

// TestOneClientThroughAllInstances: sequential commands take effect in their order, whatever their instances.
func TestOneClientThroughAllInstances(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 2, 3)
	var last *history.Operation
	for n := range 30 {
		op := s.putIn(protocol.InstanceID(3-n%3), protocol.MemberID(1+n%3))
		s.mustAck(op)
		if last != nil {
			require.Greater(t, op.Position, last.Position)
		}
		last = op
	}
	// Concurrent commands may take effect in any order, each of them once. The member, its leader and the network repeat
	// them.
	s.Set.Duplicate = 0.5
	var ops []*history.Operation
	for n := range 30 {
		ops = append(ops, s.putIn(protocol.InstanceID(3-n%3), 2))
	}
	s.crash(3)
	s.start(3)
	for _, op := range ops {
		s.mustAck(op)
	}
	s.Set.Duplicate = 0
	s.passes()
}

// TestBodiesOfSeveralInstances: bodies at the same index of several instances are distinct, as fragments and whole
// bodies, when they are read, when they are released, and when they come with a snapshot.
func TestBodiesOfSeveralInstances(t *testing.T) {
	for _, tweak := range []func(*fault.Settings){coded(2), func(s *fault.Settings) { coded(2)(s); s.Core.Placement, s.Core.MaxK = protocol.PlacementCopy, 0 }} {
		s := weaveStage(t, 5, tweak, func(set *fault.Settings) { set.SnapshotBytes = 3000 })
		s.lead(1, 2, 3)
		put := func(instance protocol.InstanceID) {
			s.Route = instance
			s.mustAck(s.putBody(protocol.MemberID(instance)))
			s.Route = 0
		}
		s.split(5)
		for n := range 15 {
			put(protocol.InstanceID(1 + n%3))
		}
		fault.HealLinks(s.World)
		s.until("5 has it all", func() bool { return !s.Member(5).Behind() && !s.Member(5).Lacks() })
		s.readable(1, 4, 5)
		s.crash(1, 2)
		s.readable(3, 5)
		op := &history.Operation{Operation: check.Operation{Kind: check.Put, Key: "k0", Value: "1,"}}
		s.ask(4, op)
		s.mustAck(op)
		s.start(1, 2)
		s.readable(1, 2, 3, 4, 5)
		s.passes()
	}
}

// known returns the members of an instance in the configuration that a member has applied.
func (s *script) known(id protocol.MemberID, instance protocol.InstanceID) []protocol.MemberID {
	c := s.Member(id).Of(instance).Config()
	return c.All()
}

// TestChangeInSomeInstances: all members lose power when a membership change is made in one, two or
// all instances. The change is finished afterwards. The next change waits for that.
func TestChangeInSomeInstances(t *testing.T) {
	for done := 1; done <= 3; done++ {
		s := weaveStage(t, 4)
		s.lead(1, 2, 3)
		s.mustAck(s.putIn(1, 1))
		s.Pass = func(m *protocol.Message) bool { // later instances commit no configuration
			for i := range m.Entries {
				if m.Entries[i].Kind == protocol.EntryConfig && int(m.Instance) > done {
					return false
				}
			}
			return true
		}
		changeAt(s.Member(1), []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 4}}}, func(err error) { s.Tracef("refused: %v", err) })
		s.until("it is made", func() bool { return len(s.known(1, 1)) == 3 })
		s.wait(2)
		for instance := 1; instance <= 3; instance++ {
			require.Equal(t, instance <= done, len(s.known(1, protocol.InstanceID(instance))) == 3)
		}
		refused := error(nil)
		changeAt(s.Member(1), []protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 3, Name: "renamed"}}}, func(err error) { refused = err })
		s.wait(0.5)
		if done < 3 {
			require.ErrorContains(t, refused, protocol.ReasonChangePending.String())
		}
		s.crash(1, 2, 3, 4)
		s.Pass = nil
		s.start(1, 2, 3, 4)
		if done < 3 {
			s.until("all follow", func() bool {
				l := s.Leader()
				return l != nil && l.Settled() && len(s.known(l.ID, 3)) == 3
			})
		}
		s.passes()
	}
}

// TestRemovedMemberLeads: the leader of an instance is removed, and gets no messages of the first instance any more.
// Other members report the removal to it.
func TestRemovedMemberLeads(t *testing.T) {
	s := weaveStage(t, 4)
	s.lead(1, 2, 4)
	s.mustAck(s.putIn(1, 1))
	s.onlyIn(1, func(m *protocol.Message) bool { return m.To != 4 })
	changeAt(s.Member(1), []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 4}}}, func(err error) { s.Tracef("refused: %v", err) })
	s.until("all follow", func() bool {
		return s.Member(1).Settled() && len(s.known(1, 1)) == 3
	})
	require.Len(t, s.known(1, 3), 3)
	s.crash(4)
	s.Member(4).Gone = true
	s.mustAck(s.putIn(3, 1))
	s.passes()
}

// leftOut shrinks the first instance to one member before the others. A removed member does not have its last
// entries, and one of these began an instance. That instance needs the member for a majority.
func leftOut(s *script) {
	s.lead(5, 2, 2)
	s.mustAck(s.putIn(1, 5))
	s.onlyIn(1, func(m *protocol.Message) bool { return m.To != 1 })
	s.Member(5).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(4)}})
	s.until("the others have begun instance 4", func() bool {
		return !slices.ContainsFunc(s.Members[1:], func(m *node.Member) bool { return len(m.InForce) < 4 || m.Of(4).Inst.Core().Status().Leader == 0 })
	})
	s.electIn(4, 2)
	s.wait(2)
	require.Len(s.t, s.Member(1).InForce, 3)
	s.Pass = func(m *protocol.Message) bool { // the other instances do not follow
		config := slices.ContainsFunc(m.Entries, func(e protocol.Entry) bool { return e.Kind == protocol.EntryConfig })
		return m.Instance == 1 && m.To != 1 || m.Instance != 1 && !config
	}
	var removals []protocol.Change
	for id := range protocol.MemberID(4) {
		removals = append(removals, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id + 1}})
	}
	changeAt(s.Member(5), removals, func(err error) { s.Violate(5, err) })
	s.until("the first instance has one member", func() bool {
		return len(s.known(5, 1)) == 1 && slices.Equal(s.Member(3).Witness.Latest.Config.All(), []protocol.MemberID{5})
	})
	s.wait(3)
	for _, id := range []protocol.InstanceID{2, 3, 4} {
		require.Len(s.t, s.known(5, id), 5)
	}
	s.crash(2, 4)
	s.Member(2).Gone, s.Member(4).Gone = true, true
	s.Pass = nil
}

// TestAMemberThatOneInstanceLeftOut: a removed member still gets that instance's entries, because the other instances
// still have it. So the change completes.
func TestAMemberThatOneInstanceLeftOut(t *testing.T) {
	for _, tweak := range []func(*fault.Settings){
		func(*fault.Settings) {},
		coded(2),
		func(set *fault.Settings) { set.SnapshotBytes = 500 }, // it gets a snapshot
	} {
		s := weaveStage(t, 5, tweak)
		leftOut(s)
		s.mustAck(s.put(5))
		s.until("all follow", func() bool { return s.Member(5).Settled() && len(s.known(5, 4)) == 1 })
		s.mustAck(s.put(5))
		s.passes()
	}
}

// statelessVoter replaces the only voter by a learner. It gets the first instance's log, but not those of two retired
// instances. So it must not count before it has a snapshot.
func statelessVoter(s *script) {
	s.lead(1, 1, 1)
	s.mustAck(s.putIn(2, 1))
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(1)}})
	s.until("instances 2 and 3 are retired", func() bool { return len(s.Member(1).InForce) == 1 })
	added := fault.AddMember(s.World)
	change := func(changes ...protocol.Change) {
		if s.Member(1).Up && s.Member(1).Leads() {
			changeAt(s.Member(1), changes, func(error) {})
		}
		s.wait(0.5)
	}
	s.until("the learner has the log", func() bool {
		change(protocol.Change{Kind: protocol.AddLearner, Member: added})
		m := s.Member(2)
		return m.Up && m.Witness.Latest.Commit > 0
	})
	s.until("it takes the place of the voter", func() bool {
		change(protocol.Change{Kind: protocol.AddVoter, Member: added}, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 1}})
		return s.Member(2).Witness.Latest.Config.Voter(2) && roleOf(s.Member(2)) == protocol.Leader
	})
	if op := s.put(2); !s.RunUntil(s.Now()+20*stageElection, func() bool { return s.acked(op) }) {
		s.Violate(2, fmt.Errorf("it is the only voter, and has not got the state"))
	}
}

func TestALearnerWithoutTheStateDoesNotTakeThePlaceOfTheVoter(t *testing.T) {
	s := weaveStage(t, 1)
	statelessVoter(s)
	require.Nil(t, s.end())
}

// TestASoleVoterWithoutTheStateAsksALearner: the same with a broken rule, while another learner has the state. The
// only voter asks it.
func TestASoleVoterWithoutTheStateAsksALearner(t *testing.T) {
	s := newStage(t, 1, string(raft.MutantCountStateless), woven)
	s.lead(1, 1, 1)
	s.mustAck(s.putIn(2, 1))
	change := func(changes ...protocol.Change) {
		if s.Member(1).Up && s.Member(1).Leads() {
			changeAt(s.Member(1), changes, func(error) {})
		}
		s.wait(0.5)
	}
	learner := fault.AddMember(s.World)
	s.until("a learner has the state", func() bool {
		change(protocol.Change{Kind: protocol.AddLearner, Member: learner})
		return s.Member(2).Up && s.Member(2).Applied(1) > 0
	})
	s.mustAck(s.putIn(3, 1))
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(1)}})
	s.until("instances 2 and 3 are retired", func() bool { return len(s.Member(1).InForce) == 1 && len(s.Member(2).InForce) == 1 })
	added := fault.AddMember(s.World)
	s.until("a new learner has the log", func() bool {
		change(protocol.Change{Kind: protocol.AddLearner, Member: added})
		m := s.Member(3)
		return m.Up && m.Witness.Latest.Commit > 0
	})
	s.until("it takes the place of the voter", func() bool {
		change(protocol.Change{Kind: protocol.AddVoter, Member: added}, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 1}})
		return s.Member(3).Witness.Latest.Config.Voter(3) && roleOf(s.Member(3)) == protocol.Leader
	})
	require.Len(t, s.Member(3).InForce, 3, "it has not got the state")
	s.until("it has got the state of the learner", func() bool { return len(s.Member(3).InForce) == 1 })
	s.mustAck(s.put(3))
	s.passes()
}

// stopStates stalls the state machines of these members.
func (s *script) stopStates(ids ...protocol.MemberID) {
	for _, id := range ids {
		s.Member(id).Lagging = s.Now() + 100*stageElection
	}
}

// goOn ends the stall of the state machines of these members, by a restart, because their items in hand wait.
func (s *script) goOn(ids ...protocol.MemberID) {
	s.crash(ids...)
	s.start(ids...)
}

// TestAReshapeDoesNotWaitForTheStateMachine: the state machines of all members are stalled, and the number of
// instances changes twice. New instances begin, elect and decide. After a crash the members recover that, although it
// is in no state. Requests meanwhile take effect once.
func TestAReshapeDoesNotWaitForTheStateMachine(t *testing.T) {
	s := weaveStage(t, 3)
	s.lead(1, 1, 1)
	s.mustAck(s.putIn(2, 1))
	s.stopStates(1, 2, 3)
	position := func(id protocol.MemberID) int { at := s.Member(id).Applier.Cursor(); return len(at.Points) }
	inForce := func(n int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(s.Members, func(m *node.Member) bool { return len(m.InForce) != n })
		}
	}
	late := s.put(1) // the first item in hand waits as well
	s.wait(0.5)
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(5)}})
	s.until("instances 4 and 5 have begun", inForce(5))
	s.electIn(5, 1)
	op := s.putIn(5, 1)
	s.until("instance 5 has decided it", func() bool { return s.Court.Of(5).Ledger.Decided() >= 2 })
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(2)}})
	s.until("instances 3, 4 and 5 are retired", inForce(2))
	read := s.get(1)
	s.wait(12) // longer than a retired instance is kept otherwise
	for id := range protocol.MemberID(3) {
		require.Equal(t, 3, position(id+1), "no state has come there")
		require.NotEmpty(t, s.Member(id+1).Retired, "no snapshot says that they are retired")
	}
	require.False(t, s.acked(late) || s.acked(op) || s.acked(read))

	s.goOn(1, 2, 3)
	s.until("all states have come there", func() bool { return position(1) == 2 && position(2) == 2 && position(3) == 2 })
	s.mustAck(s.put(2))
	s.mustAck(s.get(3))
	s.passes()
}

// TestAnInstanceThatHasNotHeardOfItsRetirement: an instance is not active any more, and has a tick before it learns
// that. Leaders take turns by the positions of their instances, and it has none.
func TestAnInstanceThatHasNotHeardOfItsRetirement(t *testing.T) {
	s := weaveStage(t, 3, func(set *fault.Settings) { set.Core.Leaders = protocol.LeadersSpread })
	s.lead(1, 2, 3)
	s.mustAck(s.put(1))
	m := s.Member(3)
	left, all := m.Of(3), m.Crew
	m.Crew = all.First(2)
	s.wait(2)
	require.True(t, left.Leads())
	m.Crew = all
	s.mustAck(s.put(2))
	s.passes()
}

package sim

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// script is a world without random faults, for step-by-step scenarios. Links take a millisecond, disks take two, and
// nothing fails unless the scenario causes it. If SIM_TRACE is set, the trace goes to standard error.
type script struct {
	t *testing.T
	*fault.World
	client client.Client
}

const (
	stageHeartbeat = 50 * time.Millisecond
	stageElection  = 500 * time.Millisecond
)

func newStage(t *testing.T, nodes int, mutant string, tweak func(*fault.Settings)) *script {
	t.Helper()
	set := fault.Settings{
		Settings: node.Settings{
			ClusterSettings: node.ClusterSettings{Protocol: registry.Find(fault.DefaultProtocol), Nodes: nodes, Mutant: mutant},
			TimeSettings:    node.TimeSettings{Heartbeat: stageHeartbeat, Election: stageElection, Tick: 5 * time.Millisecond},
			LinkSettings:    node.LinkSettings{Distances: device.Distances{DelayMin: time.Millisecond, DelayMax: time.Millisecond}},
			DiskSettings: node.DiskSettings{
				SyncMin: 2 * time.Millisecond, SyncMax: 2 * time.Millisecond, SegmentBytes: 16 << 10, SnapshotBytes: 1 << 30,
			},
			MemberSettings: node.MemberSettings{BatchCommands: 1, BatchBytes: 1 << 20, GiveUp: time.Hour},
		},
		ClientSettings: fault.ClientSettings{Keys: 1},
	}
	set.Core = protocol.Settings{Instance: node.FirstInstance, Heartbeat: stageHeartbeat, ElectionTimeout: stageElection, MaxFrameEntries: 1}
	set.Core.Mutant = set.ProtocolMutant()
	if tweak != nil {
		tweak(&set)
	}
	var out *world.Trace
	if os.Getenv("SIM_TRACE") != "" {
		out = world.NewTrace(io.Writer(os.Stderr))
	}
	s := &script{t: t, World: fault.New(set, fault.RunChance.Of(1).Rand, out)}
	s.client = s.Clients.Client(1, 0)
	for _, m := range s.Members {
		s.StartMember(m)
	}
	return s
}

// until runs the world until done is true. It fails the test after a minute.
func (s *script) until(what string, done func() bool) {
	s.t.Helper()
	if !s.RunUntil(s.Now()+time.Minute, done) && s.Broken == nil {
		require.Fail(s.t, "not reached: "+what, describeMembers(s.World, s.Members))
	}
}

// neverComes adds voters that never start, as with a mistyped address, twice. The only running member must continue
// to serve. A third one starts at last, and is promoted automatically.
func neverComes(s *script) {
	s.elect(1)
	s.wait(2) // the log has a lineage before a member is added
	for _, id := range []protocol.MemberID{2, 3, 4} {
		m := node.NewMember(&s.Environment, id)
		m.Join, m.Gone = true, id < 4
		s.Members = append(s.Members, m)
		added := []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: id}}}
		changeAt(s.Member(1), s.Member(1).Witness.Latest.Config.Joins(added), func(err error) { s.Violate(1, err) })
		s.wait(1)
		op := s.put(1)
		if !s.RunUntil(s.Now()+20*stageElection, func() bool { return s.acked(op) }) {
			s.Violate(1, fmt.Errorf("writes wait for member %s, which never came", id))
			return
		}
	}
	s.start(4)
	s.until("4 is a voter", func() bool { return s.Member(4).Witness.Latest.Config.Voter(4) })
	remove := []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 2}}}
	changeAt(s.Member(1), remove, func(err error) { s.Violate(1, err) })
	s.wait(1)
	s.mustAck(s.get(4))
}

func TestMembersThatNeverComeHoldUpNothing(t *testing.T) {
	s := newStage(t, 1, "", nil)
	neverComes(s)
	require.Nil(t, s.end())
}

// unknownLeader: a member comes back, and the leader has joined meanwhile. The member does not know that leader, and
// must still respond to it: otherwise it never gets the log.
func unknownLeader(s *script) {
	s.elect(1)
	s.wait(2) // the membership names the log of each member
	s.crash(3)
	added := []protocol.Change{{Kind: protocol.AddVoter, Member: fault.AddMember(s.World)}}
	changeAt(s.Member(1), s.Member(1).Witness.Latest.Config.Joins(added), func(err error) { s.Violate(1, err) })
	s.until("4 is a voter", func() bool { m := s.Member(4); return m.Up && m.Witness.Latest.Config.Voter(4) })
	s.wait(2)
	s.Member(1).Step(protocol.Transfer{To: 4})
	s.until("4 leads", func() bool { return roleOf(s.Member(4)) == protocol.Leader })
	op := s.put(4)
	s.mustAck(op)
	s.start(3)
	if !s.RunUntil(s.Now()+10*stageElection, func() bool { c := s.Member(3).Applier.Config(); return c.Voter(4) }) {
		s.Violate(3, fmt.Errorf("it does not get the log of member 4, which it does not know"))
	}
}

func TestAMemberAnswersALeaderThatItDoesNotKnow(t *testing.T) {
	s := newStage(t, 3, "", nil)
	unknownLeader(s)
	s.passes()
}

// TestAnUndecidedRemovalEndsNoLink: a leader that is cut off removes another member, which leads later. It must
// respond to that one, because the removal was never committed.
func TestAnUndecidedRemovalEndsNoLink(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(2)
	s.mustAck(s.put(2))
	s.wait(2)
	s.split(2)
	remove := []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 1}}}
	changeAt(s.Member(2), remove, func(err error) { s.Tracef("refused: %v", err) })
	s.until("2 has the change in its log", func() bool { return s.Member(2).Witness.Latest.Config.Find(1) == nil })
	s.elect(1)
	s.wait(10) // far longer than a link to a removed member is kept
	fault.HealLinks(s.World)
	op := s.put(1)
	s.mustAck(op)
	if !s.RunUntil(s.Now()+10*stageElection, func() bool { return s.commit(2) == s.commit(1) }) {
		s.Violate(2, fmt.Errorf("it does not answer member 1, which was never removed"))
	}
	s.passes()
}

// TestALearnerThatIsAheadIsNoObstacle: a member that is cut off has an undecided change that promotes a learner. Only
// the learner has the entries of a later leader, and that leader is lost. The first one needs the learner's vote, but
// its log is behind that of the learner. The others must still make progress.
func TestALearnerThatIsAheadIsNoObstacle(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(3)
	s.mustAck(s.put(3))
	s.wait(2)
	added := fault.AddMember(s.World)
	learns := []protocol.Change{{Kind: protocol.AddLearner, Member: added}}
	changeAt(s.Member(3), learns, func(err error) { s.Violate(3, err) })
	s.until("4 is a learner", func() bool {
		m := s.Member(4)
		return m.Up && m.Witness.Latest.Config.Find(4) != nil && s.commit(4) == s.commit(3)
	})
	s.wait(2)
	s.split(3)
	counts := []protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: 4}}}
	changeAt(s.Member(3), counts, func(err error) { s.Tracef("refused: %v", err) })
	s.until("3 counts 4", func() bool { return s.Member(3).Witness.Latest.Config.Voter(4) })
	s.Pass = func(m *protocol.Message) bool { return m.Type != message.Append || m.To == 4 }
	s.elect(2)
	s.until("only 4 has the entry of 2", func() bool { return s.last(4) == s.last(2) && s.last(4) > s.last(1) })
	s.crash(2)
	s.Member(2).Gone = true
	s.Pass = nil
	fault.HealLinks(s.World)
	require.False(t, s.Member(4).Witness.Latest.Config.Voter(4))
	s.until("somebody leads", func() bool { l := s.Leader(); return l != nil && l.ID != 2 && l.ID != 4 })
	s.mustAck(s.put(1))
	s.passes()
}

// TestAPlannedStopIsNotNoticed: another member leads long before an election timeout has passed. Operations that were
// requested before the stop take effect.
func TestAPlannedStopIsNotNoticed(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(2))
	began := s.Now()
	ops := []*history.Operation{s.put(1), s.put(2), s.put(3)}
	fault.LeaveFor(s.World, s.Member(1), stageElection)
	s.until("1 has stopped", func() bool { return !s.Member(1).Up })
	ops = append(ops, s.put(2), s.put(3))
	for _, op := range ops[1:] { // the client of the stopping member may not get the response
		s.mustAck(op)
	}
	require.Less(t, s.Now()-began, stageElection/2)
	require.Nil(t, s.end())
}

// wait runs the world for the given number of election timeouts.
func (s *script) wait(timeouts float64) {
	s.Run(s.Now() + time.Duration(timeouts*float64(stageElection)))
}

// elect waits until a member leads. Meanwhile only that member can campaign.
func (s *script) elect(id protocol.MemberID) {
	s.t.Helper()
	before := s.Pass
	s.Pass = func(m *protocol.Message) bool {
		if (m.Type == message.PreVote || m.Type == message.Vote) && m.From != id {
			return false
		}
		return before == nil || before(m)
	}
	s.until(fmt.Sprintf("%s leads", id), func() bool { m := s.Member(id); return m.Up && roleOf(m) == protocol.Leader })
	s.Pass = before
}

// ask sends an operation to a member. It returns after the immediate turns.
func (s *script) ask(id protocol.MemberID, op *history.Operation) {
	s.client.Perform(s.Member(id), op, time.Hour, func() {})
	s.Run(s.Now())
}

// put starts a write at a member and returns at once.
func (s *script) put(id protocol.MemberID) *history.Operation {
	op := &history.Operation{Operation: check.Operation{Kind: check.Append, Key: "k0", Value: fmt.Sprintf("%d,", len(s.History.Ops))}}
	s.ask(id, op)
	return op
}

// get starts a read at a member and returns at once.
func (s *script) get(id protocol.MemberID) *history.Operation {
	op := &history.Operation{Operation: check.Operation{Kind: check.Get, Key: "k0"}}
	s.ask(id, op)
	return op
}

// acked reports whether the operation has succeeded.
func (s *script) acked(op *history.Operation) bool { return s.History.Succeeded(op) }

func (s *script) mustAck(op *history.Operation) {
	s.t.Helper()
	s.until("the operation is acknowledged", func() bool { return s.acked(op) })
}

// split cuts all links between the given members and the others.
func (s *script) split(ids ...protocol.MemberID) {
	fault.HealLinks(s.World)
	in := func(m *node.Member) bool {
		for _, id := range ids {
			if m.ID == id {
				return true
			}
		}
		return false
	}
	for _, a := range s.Members {
		for _, b := range s.Members {
			s.Net.Link(a.ID, b.ID).Cut = in(a) != in(b)
		}
	}
}

func (s *script) crash(ids ...protocol.MemberID) {
	for _, id := range ids {
		s.Member(id).Crash()
	}
}

func (s *script) start(ids ...protocol.MemberID) {
	for _, id := range ids {
		m := s.Member(id)
		m.Disk.FailSync, m.Disk.PowerAt = false, 0
		if !m.Up && !m.Gone && s.Broken == nil {
			s.Boot(m)
		}
	}
}

// end ends all faults, demands progress and judges the run. It returns the violation.
func (s *script) end() *world.Violation {
	if s.Broken == nil {
		secondPhase(s.World)
	}
	if s.Out != nil {
		require.NoError(s.t, s.Out.Flush())
	}
	return s.Broken
}

func (s *script) passes() {
	s.t.Helper()
	if v := s.end(); v != nil {
		require.NoError(s.t, v)
	}
}

// figure8 is the scenario of figure 8 of the Raft paper. An entry of an old term is on a majority,
// and a member without it can still win an election.
func figure8(s *script) {
	s.elect(1)
	s.wait(0.2)
	s.split(1, 2)
	s.put(1)
	s.wait(0.1)
	s.crash(1, 2)
	fault.HealLinks(s.World)

	// 5 leads a term of its own, and no message leaves it.
	s.Pass = func(m *protocol.Message) bool { return m.From != 5 || m.Type != message.Append }
	s.elect(5)
	s.wait(0.1)
	s.crash(5)

	// 1 leads again. The old entry reaches a majority; no entry of the new term does.
	s.Pass = nil
	s.start(1, 2)
	limit := s.Member(5).Witness.Latest.Term
	s.Pass = func(m *protocol.Message) bool {
		return m.Type != message.Append || len(m.Entries) == 0 || m.Entries[len(m.Entries)-1].Term < limit
	}
	s.elect(1)
	s.wait(0.5)
	s.crash(1, 2)

	// 5 can win against all members that hold the entry, and then replaces it.
	s.Pass = nil
	s.start(5)
	s.elect(5)
	s.wait(1)
	s.start(1, 2)
}

// jointHalf adds a configuration change to a leader's log while the old members are unreachable. The change goes from
// three members to three others, two of which are new.
func jointHalf(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	for range 2 {
		added := fault.AddMember(s.World)
		s.until("the learner is let in", func() bool {
			if m := s.Member(1).Witness.Latest.Config; m.Find(added.ID) != nil {
				return true
			}
			changeAt(s.Member(1), []protocol.Change{{Kind: protocol.AddLearner, Member: added}}, func(error) {})
			s.wait(1)
			return false
		})
	}
	s.wait(4)
	s.split(1, 4, 5)
	changeAt(s.Member(1), []protocol.Change{
		{Kind: protocol.AddVoter, Member: protocol.Member{ID: 4}}, {Kind: protocol.AddVoter, Member: protocol.Member{ID: 5}},
		{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 2}}, {Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}},
	}, func(err error) { s.Tracef("refused: %v", err) })
	s.Run(s.Now())
	require.True(s.t, s.Member(1).Witness.Latest.Config.Joint() || s.Broken != nil, "the change was refused")
	lost := s.put(1)
	s.wait(0.5)
	s.Pass = nil
	s.elect(2)
	s.mustAck(s.put(3))
	if s.Broken == nil {
		require.False(s.t, s.acked(lost), "decided without the outgoing voters")
	}
}

// oldLease cuts off a leader, perhaps with its lease. The others, with fast clocks, elect another leader.
func oldLease(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(2)
	s.Member(2).SetRate(1.8)
	s.Member(3).SetRate(1.8)
	s.split(1)
	began := s.Now()
	s.elect(2)
	s.mustAck(s.put(2))
	s.Tracef("the others went on after %s", s.Now()-began)
	s.get(1)
	s.wait(0.5)
}

// oldLeader pauses a leader while a read waits for it. Meanwhile the others continue.
func oldLeader(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	s.Member(1).Paused = s.Now() + 10*stageElection
	s.get(1)
	s.elect(2)
	s.mustAck(s.put(2))
	s.wait(10)
}

// frozenLeader freezes a leader in the middle of a turn. Meanwhile the others continue, and a client sends a request
// to the frozen leader.
func frozenLeader(s *script) {
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
	s.Member(1).Freeze(6 * stageElection)
	s.elect(2)
	s.mustAck(s.put(2))
	s.get(1)
	s.wait(10)
}

func TestLeaderFrozenInATurn(t *testing.T) {
	for _, tweak := range []func(*fault.Settings){nil, leases(0.1)} {
		s := newStage(t, 3, "", tweak)
		frozenLeader(s)
		s.passes()
	}
	s := newStage(t, 3, string(member.MutantOldClock), leases(0.1))
	frozenLeader(s)
	require.ErrorContains(t, s.end(), "a read may be served at 3, and 5 was decided when it was asked for")
}

func TestOldLeaderThatStoodStill(t *testing.T) {
	s := newStage(t, 3, "", nil)
	oldLeader(s)
	s.passes()
}

func TestFigure8(t *testing.T) {
	s := newStage(t, 5, "", nil)
	figure8(s)
	s.passes()
}

func TestJointChangeNeedsBothHalves(t *testing.T) {
	s := newStage(t, 3, "", nil)
	jointHalf(s)
	s.passes()
}

func leases(drift float64) func(*fault.Settings) {
	return func(s *fault.Settings) {
		s.Core.LeaseReads = true
		s.Core.MaxClockDrift = time.Duration(drift * float64(stageElection))
	}
}

func TestOldLeaderWithALease(t *testing.T) {
	s := newStage(t, 3, "", leases(0.9))
	oldLease(s)
	s.passes()
}

// TestLeaderCrashAfterPartialReplication: an entry that only a minority has may survive or not. Once it was read, it
// stays.
func TestLeaderCrashAfterPartialReplication(t *testing.T) {
	for _, successor := range []protocol.MemberID{2, 3, 4} {
		s := newStage(t, 5, "", nil)
		s.elect(1)
		s.mustAck(s.put(1))
		s.split(1, 2)
		op := s.put(1)
		s.wait(0.1)
		require.False(t, s.acked(op))
		s.crash(1)
		fault.HealLinks(s.World)
		if successor == 2 {
			s.elect(2)
			s.wait(0.5)
			require.True(t, op.Effective, "2 holds it and led")
		} else {
			s.split(1, 2)
			s.elect(successor)
			s.mustAck(s.put(successor))
			require.False(t, op.Effective)
		}
		s.start(1)
		s.passes()
	}
}

func TestPowerLossOfEverybody(t *testing.T) {
	for delay := time.Duration(0); delay < 12*time.Millisecond; delay += 500 * time.Microsecond {
		s := newStage(t, 3, "", nil)
		s.elect(1)
		op := s.put(1)
		s.Run(s.Now() + delay)
		answered := s.acked(op)
		s.crash(1, 2, 3)
		s.wait(1)
		s.start(1, 2, 3)
		s.passes()
		require.True(t, op.Effective || !answered, "acknowledged and lost with a delay of %s", delay)
	}
}

func TestLeaderWithAStalledDiskIsReplaced(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	s.Member(1).Stalled = s.Now() + time.Hour
	op := s.put(1)
	s.until("another leader", func() bool {
		return roleOf(s.Member(1)) != protocol.Leader && (roleOf(s.Member(2)) == protocol.Leader || roleOf(s.Member(3)) == protocol.Leader)
	})
	s.mustAck(op) // by the others
	s.Member(1).Stalled = 0
	s.passes()
}

func TestFailedSyncStopsTheMember(t *testing.T) {
	s := newStage(t, 3, "", nil)
	s.elect(1)
	s.mustAck(s.put(1))
	s.Member(1).Disk.FailSync = true
	op := s.put(1)
	s.until("the member stops", func() bool { return !s.Member(1).Up })
	s.until("another leader", func() bool { return roleOf(s.Member(2)) == protocol.Leader || roleOf(s.Member(3)) == protocol.Leader })
	require.False(t, s.acked(op))
	s.start(1)
	s.passes()
}

// TestOneWayLinks: a leader that gets no messages must not prevent the others from electing another one. A leader
// whose messages are all lost must not disturb the others.
func TestOneWayLinks(t *testing.T) {
	for _, outward := range []bool{true, false} {
		s := newStage(t, 3, "", nil)
		s.elect(1)
		s.mustAck(s.put(1))
		for _, other := range []protocol.MemberID{2, 3} {
			s.Net.Link(1, other).Cut = outward
			s.Net.Link(other, 1).Cut = !outward
		}
		s.until("another leader", func() bool { return roleOf(s.Member(2)) == protocol.Leader || roleOf(s.Member(3)) == protocol.Leader })
		s.wait(20) // a member that is cut off in one direction campaigns again and again
		terms := s.Member(2).Witness.Latest.Term
		s.mustAck(s.put(2))
		s.wait(20)
		require.Equal(t, terms, s.Member(2).Witness.Latest.Term, "the cut member disturbs")
		s.passes()
	}
}

func TestSlowFollowerCatchesUpBySnapshot(t *testing.T) {
	for _, own := range []bool{false, true} {
		s := newStage(t, 3, "", func(set *fault.Settings) { set.SnapshotBytes, set.Durable = 2000, own })
		s.elect(1)
		s.split(3)
		for range 100 {
			s.mustAck(s.put(1))
		}
		first := s.Member(1).Inst.Core().Status().First
		require.Greater(t, first, s.Member(3).Witness.Latest.Last+1, "the log was not cut")
		fault.HealLinks(s.World)
		s.until("the follower has it", func() bool { return !s.Member(3).Behind() })
		s.crash(3)
		s.start(3)
		s.passes()
	}
}

func TestReplaceAMemberUnderFaults(t *testing.T) {
	s := newStage(t, 3, "", func(set *fault.Settings) { set.SnapshotBytes = 2000 })
	s.elect(1)
	for range 50 {
		s.mustAck(s.put(1))
	}
	s.crash(3) // forever
	added := fault.AddMember(s.World)
	change := func(changes ...protocol.Change) {
		for _, m := range s.Members {
			if m.Up && roleOf(m) == protocol.Leader {
				changeAt(m, changes, func(error) {})
			}
		}
		s.wait(1)
	}
	in := func(ids int) func() bool {
		return func() bool {
			c := s.Member(2).Applier.Config()
			return !c.Joint() && len(c.Voters()) == ids && c.Find(added.ID) != nil
		}
	}
	s.until("the learner is let in", func() bool {
		change(protocol.Change{Kind: protocol.AddLearner, Member: added})
		return in(3)()
	})
	s.crash(1) // the leader, in the middle
	s.start(1)
	s.until("the new member replaced the old one", func() bool {
		change(protocol.Change{Kind: protocol.AddVoter, Member: added}, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: 3}})
		c := s.Member(2).Applier.Config()
		return in(3)() && c.Find(3) == nil
	})
	s.crash(1)
	op := s.put(2)
	s.mustAck(op) // 2 and the new member are a majority
	s.passes()
}

// roleOf returns the member's role in the first instance.
func roleOf(m *node.Member) protocol.Role { return m.Witness.Latest.Role }

// changeAt requests a membership change of the member, which leads, once; refused is called if there is an error.
func changeAt(m *node.Member, changes []protocol.Change, refused func(error)) {
	m.Execute(cluster.Operation{Kind: cluster.ChangeMembers, Changes: changes}, time.Hour, func(err error) {
		if err != nil {
			refused(err)
		}
	})
}

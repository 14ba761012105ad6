package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// Scenarios of seals (docs/internals/switch.md): what may happen between the proposal of a seal and the beginning of
// the instances behind it. In each the cluster serves in the end, and the judges find nothing.

var sealScenarios = []struct {
	name  string
	nodes int
	tweak func(*fault.Settings)
	play  func(*script)
}{
	{"the leader dies right after the seal is decided", 3, nil, leaderDies},
	{"the first leader crashes with its first message", 3, nil, firstLeaderCrashes},
	{"the decider dies after one other member began", 3, nil, deciderDies},
	{"a minority with the old leader serves reads", 3, byLease, minorityReads},
	{"a member is behind and needs a snapshot", 3, cutLogs, behindBySnapshot},
	{"two switches back to back", 3, nil, backToBack},
	{"there and back under load", 3, nil, thereAndBack},
	{"a change of members before the seal", 3, nil, changeThenSeal},
	{"a change of members behind the seal", 3, nil, sealThenChange},
	{"a change of members before the seal of an epoch", 3, of("iss"), changeThenSeal},
	{"a change of members behind the seal of an epoch", 3, of("iss"), sealThenChange},
	{"two seals at once", 3, nil, twoSeals},
	{"a void seal under reads", 3, byLease, voidSeal},
	{"a member that acknowledged behind the seal crashes when it has begun", 3, nil, acknowledgedBehind},
	{"a joiner has a snapshot from before the seal", 3, slowStreams, joinerBefore},
	{"two versions behind", 3, cutLogs, twoBehind},
	{"all old members are replaced", 3, cutLogs, allReplaced},
	{"a member is wiped meanwhile", 3, nil, wipedMeanwhile},
	{"all lose power within the switch", 3, nil, allLosePower},
	{"from epochs with a banned leader", 3, of("iss"), bannedLeader},
	{"from four instances to lanes, with coded bodies", 5, fourCoded, toLanes},
	{"a leader before the seal is named", 3, nil, namedBefore},
	{"a leader before the seal is named, of epochs", 3, of("iss"), namedItself},
	{"a new leader is heard of behind the seal", 3, nil, heardLate},
	{"the decider forgets, and the others elect another leader before the seal", 3, nil, deciderForgets},
	{"to epochs that all members lead", 5, seldomTicks, promptEpochs},
}

func TestSealScenarios(t *testing.T) {
	for _, c := range sealScenarios {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.nodes, "", func(set *fault.Settings) {
				if c.tweak != nil {
					c.tweak(set)
				}
				set.Switches = true
				v := common.Heartbeat.Set(set.Core.Own, stageHeartbeat)
				v = common.Placement.Set(common.ElectionTimeout.Set(v, stageElection), set.Core.Placement)
				v = common.CodeK.Set(common.LeaseReads.Set(v, set.Core.LeaseReads), set.Core.MaxK)
				set.Profile = protocol.Profile{Version: 1, Values: v}
			})
			c.play(s)
			s.passes()
		})
	}
}

func byLease(set *fault.Settings) { set.Core.LeaseReads = true }

func cutLogs(set *fault.Settings) { set.SnapshotBytes = 500 }

func slowStreams(set *fault.Settings) { set.SnapshotBytes, set.StreamRate = 500, 100 }

func seldomTicks(set *fault.Settings) { set.Tick = stageHeartbeat }

func of(name string) func(*fault.Settings) {
	return func(set *fault.Settings) { set.Protocol = registry.Find(name) }
}

func fourCoded(set *fault.Settings) {
	wovenBodies(2)(set)
	set.Instances = 4
}

// sealTo is a seal to one instance of a core behind a profile.
func sealTo(now *protocol.Profile, core string) protocol.Seal {
	v := common.Settings.Only(now.Values)
	if core != "raft" {
		v = common.Placement.Set(v.Without(common.CodeK.Name), protocol.PlacementCopy)
	}
	v = common.Order.Set(v.Without(common.Leaders.Name), string(order.KindSingle))
	return protocol.Seal{Instances: 1, Profile: protocol.Profile{Version: now.Version + 1, Core: core, Values: v}}
}

// seal asks a member for a switch to a core.
func (s *script) seal(id protocol.MemberID, core string) (done func() (bool, error)) {
	seal := sealTo(&s.Member(id).Witness.Latest.Config.Profile, core)
	return s.operate(id, cluster.Operation{Kind: cluster.Switch, Seal: seal})
}

// begun waits until these members have begun a version.
func (s *script) begun(version uint64, ids ...protocol.MemberID) {
	s.t.Helper()
	s.until("they have begun", func() bool {
		for _, id := range ids {
			if !s.hasBegun(id, version) {
				return false
			}
		}
		return true
	})
}

func (s *script) hasBegun(id protocol.MemberID, version uint64) bool {
	m := s.Member(id)
	return m.Up && m.InForce[0].Inst.Core().Status().Config.Profile.Version >= version
}

// decided waits until a member has decided a seal of an instance.
func (s *script) decided(id protocol.MemberID, instance protocol.InstanceID) {
	s.t.Helper()
	s.until("the seal is decided", func() bool {
		return s.Member(id).Of(instance).Inst.Core().Status().Sealed >= protocol.SealSuspended
	})
}

func (s *script) mustSucceed(done func() (bool, error)) {
	s.t.Helper()
	s.until("it is done", func() bool { ended, err := done(); return ended && err == nil })
}

func leaderDies(s *script) {
	s.settled()
	s.seal(1, "multi-paxos")
	s.decided(1, 1)
	s.crash(1)
	s.begun(2, 2, 3)
	s.mustAck(s.put(2))
	s.start(1)
	s.begun(2, 1)
}

func firstLeaderCrashes(s *script) {
	s.settled()
	said := false
	s.Pass = func(m *protocol.Message) bool {
		said = said || m.From == 1 && m.Instance == 2
		return true
	}
	s.seal(1, "multi-paxos")
	s.until("it says something in the new instance", func() bool { return said })
	s.crash(1)
	s.Pass = nil
	s.start(1)
	require.True(s.t, s.Member(1).InForce[0].Instance == 2 ||
		s.Member(1).Of(1).Inst.Core().Status().Sealed == protocol.SealClosed, "it has begun")
	s.begun(2, 1, 2, 3)
}

// deciderDies: member 3 has the seal, and does not know that it is decided. The only live member that does has begun.
func deciderDies(s *script) {
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.From != 1 || m.To != 3 || len(m.Entries) > 0 }
	s.seal(1, "raft")
	s.begun(2, 2)
	require.False(s.t, s.hasBegun(3, 2))
	s.crash(1)
	s.Pass = nil
	s.begun(2, 3)
	s.mustAck(s.put(3))
	s.start(1)
}

func minorityReads(s *script) {
	s.settled()
	s.split(2, 3)
	s.until("another one leads", func() bool {
		return roleOf(s.Member(2)) == protocol.Leader || roleOf(s.Member(3)) == protocol.Leader
	})
	old := s.get(1)
	next := protocol.MemberID(2)
	if roleOf(s.Member(3)) == protocol.Leader {
		next = 3
	}
	s.mustSucceed(s.seal(next, "multi-paxos"))
	s.mustAck(s.put(next))
	late := s.get(1)
	s.wait(4)
	require.False(s.t, s.acked(old) || s.acked(late), "it knows nothing of the writes")
	fault.HealLinks(s.World)
	s.begun(2, 1)
}

func behindBySnapshot(s *script) {
	s.settled()
	s.crash(3)
	s.mustSucceed(s.seal(1, "multi-paxos"))
	for range 20 {
		s.mustAck(s.put(1))
	}
	s.until("the others have given up the old log", func() bool {
		return s.Member(1).Of(1) == nil && s.Member(2).Of(1) == nil
	})
	s.start(3)
	s.begun(2, 3)
	s.until("it has a snapshot", func() bool { return s.Member(3).Exchange.Taken() > 0 })
}

func backToBack(s *script) {
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.To != 3 || m.Instance == 1 } // it hears nothing of the next ones
	s.mustSucceed(s.seal(1, "multi-paxos"))
	s.mustSucceed(s.seal(1, "iss"))
	op := s.put(1)
	s.mustAck(op)
	s.Pass = nil
	s.begun(3, 1, 2, 3)
}

func thereAndBack(s *script) {
	s.settled()
	var ops []*history.Operation
	for i, core := range []string{"multi-paxos", "raft", "iss", "raft"} {
		done := s.seal(1, core)
		for n := range 20 {
			ops = append(ops, s.put(protocol.MemberID(1+n%3)))
			s.wait(0.01)
		}
		s.mustSucceed(done)
		s.begun(uint64(i+2), 1, 2, 3)
	}
	for _, op := range ops {
		s.mustAck(op)
	}
}

// addsLearner asks for a learner, and returns its id.
func (s *script) addsLearner() (id protocol.MemberID, done func() (bool, error)) {
	added := fault.AddMember(s.World)
	return added.ID, s.operate(1, cluster.Operation{Kind: cluster.ChangeMembers,
		Changes: []protocol.Change{{Kind: protocol.AddLearner, Member: added}}})
}

func (s *script) serves() {
	s.t.Helper()
	s.until("there is a leader", func() bool { return s.Leader() != nil })
	s.mustAck(s.put(1))
	s.wait(2)
}

func changeThenSeal(s *script) {
	s.serves()
	id, change := s.addsLearner()
	seal := s.seal(1, "multi-paxos")
	s.until("both are answered", func() bool { a, _ := change(); b, _ := seal(); return a && b })
	if _, err := seal(); err != nil { // the change was under way
		s.mustSucceed(s.seal(s.Leader().ID, "multi-paxos"))
	}
	s.begun(2, 1, 2, 3)
	config := s.Member(1).Applier.Config()
	require.NotNil(s.t, config.Find(id))
}

func sealThenChange(s *script) {
	s.serves()
	seal := s.seal(1, "multi-paxos")
	_, change := s.addsLearner()
	s.mustSucceed(seal)
	s.until("the change is answered", func() bool { a, _ := change(); return a })
	s.begun(2, 1, 2, 3)
}

func twoSeals(s *script) {
	s.settled()
	first, second := s.seal(1, "multi-paxos"), s.seal(2, "iss")
	s.until("both are answered", func() bool { a, _ := first(); b, _ := second(); return a && b })
	_, err1 := first()
	_, err2 := second()
	require.True(s.t, (err1 == nil) != (err2 == nil), "%v, %v", err1, err2)
	s.begun(2, 1, 2, 3)
	require.EqualValues(s.t, 2, s.Member(1).InForce[0].Inst.Core().Status().Config.Profile.Version)
}

// voidSeal: the leader gets a seal of an operator who knows an earlier profile, as from a member that checks nothing.
func voidSeal(s *script) {
	s.settled()
	config := s.Member(1).Witness.Latest.Config
	seal := sealTo(&config.Profile, "iss")
	seal.Profile.Version++
	seal.Members = config.Clone()
	s.Member(1).Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewSeal(seal)}})
	read, write := s.get(1), s.put(1)
	s.mustAck(read)
	s.mustAck(s.get(1))
	s.mustAck(s.put(1))
	s.until("the write is resolved", func() bool { return s.acked(write) })
	require.Equal(s.t, protocol.InstanceID(1), s.Member(1).InForce[0].Instance)
	s.mustSucceed(s.seal(1, "multi-paxos"))
}

// acknowledgedBehind: the first entry of the next leader is behind the seal, and member 3 has acknowledged it.
func acknowledgedBehind(s *script) {
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.To != 1 || m.From != 2 && m.From != 3 } // it decides nothing
	s.seal(1, "raft")
	has := func(id protocol.MemberID) bool { return s.Member(id).Inst.Core().Status().Sealed != protocol.SealNone }
	s.until("the others have the seal", func() bool { return has(2) && has(3) })
	s.crash(1)
	s.Pass = nil
	s.elect(2)
	behind := s.last(2)
	s.begun(2, 3)
	require.Equal(s.t, behind, s.Member(3).Of(1).Inst.Core().Status().Last, "it has what is behind the seal")
	s.crash(3)
	s.start(3, 1)
	s.begun(2, 1, 2, 3)
}

func joinerBefore(s *script) {
	s.settled()
	for range 20 {
		s.mustAck(s.put(1))
	}
	s.wait(2)
	id, change := s.addsLearner()
	s.mustSucceed(change)
	s.until("a snapshot is on its way", func() bool { return s.Events.Of(node.SnapshotStreams) > 0 })
	s.mustSucceed(s.seal(1, "multi-paxos"))
	s.mustAck(s.put(1))
	s.begun(2, id)
}

func twoBehind(s *script) {
	s.settled()
	s.crash(3)
	for i, core := range []string{"iss", "multi-paxos"} {
		s.mustSucceed(s.seal(1, core))
		s.begun(uint64(i+2), 1, 2)
		for range 20 {
			s.mustAck(s.put(1))
		}
	}
	s.start(3)
	s.begun(3, 3)
}

func allReplaced(s *script) {
	s.settled()
	s.mustSucceed(s.seal(1, "multi-paxos"))
	for id := protocol.MemberID(1); id <= 3; id++ {
		added := fault.AddMember(s.World)
		s.until("it is added", func() bool {
			done := s.operate(id, cluster.Operation{Kind: cluster.ChangeMembers,
				Changes: []protocol.Change{{Kind: protocol.AddVoter, Member: added}}})
			s.wait(2)
			_, err := done()
			return err == nil && s.Member(id+3).Witness != nil && s.Member(id+3).Witness.Latest.Config.Voter(added.ID)
		})
	}
	for id := protocol.MemberID(1); id <= 3; id++ {
		s.until("it is removed", func() bool {
			s.operate(6, cluster.Operation{Kind: cluster.ChangeMembers,
				Changes: []protocol.Change{{Kind: protocol.RemoveMember, Member: protocol.Member{ID: id}}}})
			s.wait(2)
			config := s.Member(6).Applier.Config()
			return config.Find(id) == nil
		})
	}
	s.mustAck(s.put(6))
	s.mustSucceed(s.seal(6, "raft"))
	s.mustAck(s.put(5))
}

func wipedMeanwhile(s *script) {
	s.settled()
	s.wait(2)
	s.seal(1, "multi-paxos")
	s.decided(1, 1)
	s.crash(3)
	m := s.Member(3)
	m.Disk, m.Saved = device.NewDisk(), nil
	m.Strangers++
	s.start(3)
	s.begun(2, 1, 2)
	s.mustAck(s.put(1))
	s.wait(2)
	require.Positive(s.t, s.Events.Of(node.StoppedWithoutDisk))
}

// allLosePower: all members lose power a while after the seal is decided, each time a millisecond later.
func allLosePower(s *script) {
	s.settled()
	for n := range 12 {
		s.until("there is a leader", func() bool { return s.Leader() != nil })
		l := s.Leader()
		s.seal(l.ID, [...]string{"multi-paxos", "raft", "iss"}[n%3])
		s.decided(l.ID, l.InForce[0].Instance)
		s.Run(s.Now() + time.Duration(n)*time.Millisecond)
		s.crash(1, 2, 3)
		s.start(1, 2, 3)
		s.begun(uint64(n+2), 1, 2, 3)
		s.mustAck(s.put(3))
	}
}

func bannedLeader(s *script) {
	s.serves()
	s.crash(3)
	for range 10 {
		s.mustAck(s.put(1))
		s.wait(1)
	}
	s.mustSucceed(s.seal(s.Leader().ID, "raft"))
	s.mustAck(s.put(1))
	s.start(3)
	s.begun(2, 3)
}

func toLanes(s *script) {
	s.lead(1, 2, 3, 4)
	var ops []*history.Operation
	for n := range 8 {
		s.Route = protocol.InstanceID(1 + n%4)
		ops = append(ops, s.writeBody(protocol.MemberID(1+n%5), check.Append))
	}
	s.Route = 0
	seal := sealTo(&s.Member(1).Witness.Latest.Config.Profile, "raft")
	seal.Profile.Values = lane.On.Set(seal.Profile.Values, true)
	s.mustSucceed(s.operate(1, cluster.Operation{Kind: cluster.Switch, Seal: seal}))
	for _, op := range ops {
		s.mustAck(op)
	}
	for id := protocol.MemberID(1); id <= 5; id++ {
		s.mustAck(s.putBody(id))
		s.mustAck(s.get(id))
	}
}

// transfer asks a member that another one leads.
func (s *script) transfer(id, to protocol.MemberID) (done func() (bool, error)) {
	return s.operate(id, cluster.Operation{Kind: cluster.TransferLeader, To: to})
}

// namedBefore: member 3 does not know of the seal, and names the leader whom it follows.
func namedBefore(s *script) {
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.To != 3 }
	s.seal(1, "multi-paxos")
	s.begun(2, 2)
	s.mustSucceed(s.transfer(3, 1))
	require.False(s.t, s.hasBegun(3, 2))
	s.Pass = nil
	s.begun(2, 3)
}

// namedItself: the leader of the epoch's log does not know yet that others have decided the seal.
func namedItself(s *script) {
	s.serves()
	l := s.Leader().ID
	s.Pass = func(m *protocol.Message) bool { return m.To != l }
	s.seal(l, "multi-paxos")
	s.until("another member has begun", func() bool { return s.hasBegun(1+l%3, 2) || s.hasBegun(1+(l+1)%3, 2) })
	require.False(s.t, s.hasBegun(l, 2))
	s.mustSucceed(s.transfer(l, l))
	s.Pass = nil
	s.begun(2, 1, 2, 3)
}

// heardLate: member 1 hands leadership to member 2, and learns so when that one has sealed the log already.
func heardLate(s *script) {
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.To != 1 && m.Instance == 1 } // no one leads behind the seal
	moved := s.transfer(1, 2)
	s.until("member 2 leads", func() bool { return roleOf(s.Member(2)) == protocol.Leader })
	s.seal(2, "multi-paxos")
	s.begun(2, 2, 3)
	s.Pass = func(m *protocol.Message) bool { return m.Instance == 1 && (m.To != 1 || len(m.Entries) == 0) }
	s.mustSucceed(moved)
	require.False(s.t, s.hasBegun(1, 2))
	s.Pass = nil
	s.begun(2, 1)
}

// deciderForgets: member 1 decides the seal and loses power before it has written that. Member 2 is elected before the
// seal, and has not decided it again yet.
func deciderForgets(s *script) {
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.From != 1 || len(m.Entries) > 0 }
	s.seal(1, "multi-paxos")
	s.decided(1, 1)
	s.crash(1)
	s.Pass = nil
	s.elect(2)
	s.Pass = func(m *protocol.Message) bool { return m.To != 2 }
	require.False(s.t, s.hasBegun(2, 2))
	s.until("member 3 follows it", func() bool { return s.Member(3).Inst.Core().Status().Leader == 2 })
	require.False(s.t, s.hasBegun(3, 2))
	s.mustSucceed(s.transfer(3, 2))
	s.Pass = nil
	s.start(1)
	s.begun(2, 1, 2, 3)
}

// promptEpochs: all members lead behind the seal, and begin one after the other. No message to a member that began
// later has to be sent again.
func promptEpochs(s *script) {
	s.settled()
	var ops []*history.Operation
	everyone := []protocol.MemberID{1, 2, 3, 4, 5}
	s.seal(1, "iss")
	s.until("all have begun", func() bool {
		left := slices.DeleteFunc(slices.Clone(everyone), func(id protocol.MemberID) bool { return s.hasBegun(id, 2) })
		if len(ops) < 50 {
			ops = append(ops, s.put(everyone[len(ops)%len(everyone)]))
		}
		return len(left) == 0
	})
	began := s.Now()
	for _, op := range ops {
		s.mustAck(op)
	}
	require.Less(s.t, s.Now()-began, 3*stageHeartbeat/2)
}

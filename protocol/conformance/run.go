package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Pace is the step of clocks at a tick. Cores under test should have a heartbeat of about ten times that, and
// election timeouts of about a hundred times that.
const Pace = time.Millisecond

// Options enable faults of the suite beyond those that every protocol must tolerate.
type Options struct {
	// Bodies is the share of commands with a body, in thousandths.
	Bodies int
	// Rows makes row r of a body coded with k, for cores that join rows themselves; nil: rows are bytes
	// that only look like rows.
	Rows func(body []byte, k, r uint8) ([]byte, error)
	// Members is the number of members of clusters under faults; 0: it depends on the seed.
	Members int
	// Merged: the instance is one of several that are merged into one log. Rounds are skipped,
	// other instances bring snapshots and suspect leaders.
	Merged bool
	// Accepted: the protocol answers in ModeAccepted. Half of the commands are proposed in it.
	Accepted bool
	// Leases: a leader may serve reads for an election timeout without asking others.
	Leases bool
	// ReadQuorum and WriteQuorum are the protocol's, if quorums are not majorities; Grid is, if voters are in a grid.
	ReadQuorum, WriteQuorum int
	Grid                    quorum.System
	// OneVoter: changes add or remove one voter at a time.
	OneVoter bool
	// Skips: no-ops may be decided without votes. Reads need not see them.
	Skips bool
	// Derive creates the state that cores derive from their logs, from the first configuration on; nil: they derive
	// nothing.
	Derive func(protocol.Config) protocol.Derived
	// Keyed is the number of keys of commands. Members agree only on the order of each key's commands. 0: they agree on
	// one order of all.
	Keyed int
	// Seeds is the number of clusters under faults; 0: 40.
	Seeds uint64
	// Seals: the log is sealed now and then under faults, by seals that do not count.
	Seals bool
	// Torn: a part of the last write before a crash may be on disk.
	Torn bool
	// Fixed: neither the members nor the profile change.
	Fixed bool
	// Profile has the settings of cores under test that profiles of their log have too, besides times.
	Profile setting.Values
}

// suite is what is under test.
type suite struct {
	codec *protocol.Codec
	start Factory
	Options
}

func (s suite) net(t testing.TB, n int, seed uint64) *Net {
	net := NewNet(t, n, seed, s.codec, s.start)
	net.Options = s.Options
	net.judge.skips = s.Skips
	net.judge.keyed.init(s.Keyed)
	for _, n := range net.Nodes {
		net.judge.startKeyed(n, &n.Snap)
	}
	return net
}

// Run runs the suite. start must start a core with the same settings on every member. codec is that of its messages.
func Run(t *testing.T, codec *protocol.Codec, start Factory, o Options) {
	s := suite{codec, start, o}
	t.Run("one member", func(t *testing.T) { oneMember(t, s) })
	t.Run("replication", func(t *testing.T) { replication(t, s) })
	t.Run("restart from records", func(t *testing.T) { restart(t, s) })
	t.Run("leader crash", func(t *testing.T) { leaderCrash(t, s) })
	t.Run("nothing without a quorum", func(t *testing.T) { noQuorum(t, s) })
	t.Run("release waits for the disk", func(t *testing.T) { releaseWaits(t, s) })
	t.Run("reads", func(t *testing.T) { readsAnywhere(t, s) })
	t.Run("snapshot", func(t *testing.T) { snapshot(t, s) })
	if !o.Fixed {
		t.Run("membership", func(t *testing.T) { membership(t, s) })
		t.Run("tune", func(t *testing.T) { tunes(t, s) })
		t.Run("undecided tune", func(t *testing.T) { undecidedTune(t, s) })
	}
	t.Run("same inputs, same effects", func(t *testing.T) { determinism(t, s) })
	t.Run("faults", func(t *testing.T) { faults(t, s) })
}

// Until ticks all members and settles until ok, and fails after enough time for a hundred elections.
func (net *Net) Until(what string, ok func() bool) {
	net.t.Helper()
	for range 40_000 {
		if ok() {
			return
		}
		for _, n := range net.Nodes {
			net.Tick(n.ID, Pace)
			net.Backfill(n.ID)
		}
		net.Settle()
	}
	for _, n := range net.Nodes {
		if n.Core != nil {
			net.t.Logf("%+v", n.Core.Status())
		}
	}
	net.t.Fatalf("waited in vain for: %s", what)
}

// Committed proposes on a member until the command is committed there, like a real member.
func (net *Net) Committed(id protocol.MemberID, size int) protocol.Index {
	net.t.Helper()
	e := net.command(id, size)
	tries := 0
	net.Until(fmt.Sprintf("a command of member %s", id), func() bool {
		if tries%50 == 0 && net.Took(e) == 0 {
			net.Step(id, net.wants(e))
			net.Settle()
		}
		tries++
		return net.has(net.Node(id), e)
	})
	return net.Took(e)
}

// level waits until all running members of the configuration applied everything.
func (net *Net) level() {
	net.t.Helper()
	net.Until("all members being equal", func() bool {
		for _, n := range net.Nodes {
			if n.Core != nil && net.current().Find(n.ID) != nil && n.Applied < net.judge.highest {
				return false
			}
		}
		return true
	})
}

// current is the configuration that was committed last.
func (net *Net) current() *protocol.Config {
	var best *Node
	for _, n := range net.Nodes {
		if best == nil || n.Applied > best.Applied {
			best = n
		}
	}
	return &best.Config
}

func oneMember(t *testing.T, s suite) {
	net := s.net(t, 1, 1)
	net.Committed(1, 10)
	c := net.Read(1)
	net.Until("a read", func() bool { _, ok := net.Served(c); return ok })
	net.Crash(1, 0)
	net.Restart(1)
	net.Committed(1, 10)
}

func replication(t *testing.T, s suite) {
	net := s.net(t, 3, 2)
	for i := range 30 {
		net.Committed(protocol.MemberID(i%3+1), i*100)
	}
	net.level()
}

func restart(t *testing.T, s suite) {
	net := s.net(t, 3, 3)
	for range 4 {
		for i := range 10 {
			net.Committed(protocol.MemberID(i%3+1), 50)
		}
		net.level()
		for _, n := range net.Nodes {
			net.Crash(n.ID, 0) // what was committed is on a quorum of disks
		}
		net.Queue = nil
		for _, n := range net.Nodes {
			net.Restart(n.ID)
		}
		before := net.judge.highest
		net.Until("what was committed", func() bool { return net.Nodes[0].Applied >= before })
	}
	net.level()
}

func leaderCrash(t *testing.T, s suite) {
	net := s.net(t, 3, 4)
	for range 5 {
		net.Committed(1, 10)
		l := net.Leader()
		if l == nil {
			return // a protocol without leaders
		}
		net.Crash(l.ID, 0)
		other := net.Nodes[0]
		if other == l {
			other = net.Nodes[1]
		}
		net.Committed(other.ID, 10)
		net.Restart(l.ID)
	}
	net.level()
}

func noQuorum(t *testing.T, s suite) {
	net := s.net(t, 3, 5)
	net.Committed(1, 10)
	net.Crash(2, 0)
	net.Crash(3, 0)
	before := net.judge.highest
	for round := range 20 {
		net.propose(1, 10)
		var c uint64
		if !net.Leases || round > 0 {
			c = net.Read(1)
		}
		for range 100 {
			net.Tick(1, Pace)
			net.Settle()
		}
		if _, ok := net.Served(c); ok {
			t.Fatal("a read was served by a minority")
		}
	}
	if net.judge.highest != before {
		t.Fatal("a minority committed")
	}
	if net.judge.refused[protocol.ReasonNoLeader] == 0 {
		t.Fatal("nobody was told that there is no leader")
	}
	net.Restart(2)
	net.Committed(1, 10)
}

func releaseWaits(t *testing.T, s suite) {
	net := s.net(t, 3, 6)
	net.Committed(1, 10)
	net.Lag = true
	before := net.judge.highest
	for range 50 {
		for _, n := range net.Nodes {
			net.propose(n.ID, 10)
			net.Tick(n.ID, Pace)
		}
		net.Settle()
	}
	if net.judge.highest != before {
		t.Fatal("committed although no disk completed anything")
	}
	net.Lag = false
	net.Settle()
	net.Committed(1, 10)
}

func readsAnywhere(t *testing.T, s suite) {
	net := s.net(t, 3, 7)
	for round := range 20 {
		at := net.Committed(protocol.MemberID(round%3+1), 10)
		for _, n := range net.Nodes {
			c := net.Read(n.ID)
			net.Until("a read", func() bool {
				if net.Refused(c) != protocol.ReasonNone {
					c = net.Read(n.ID)
				}
				_, ok := net.Served(c)
				return ok
			})
			if i, _ := net.Served(c); i < at {
				t.Fatalf("read at %d misses %d", i, at)
			}
		}
	}
}

func snapshot(t *testing.T, s suite) {
	net := s.net(t, 3, 8)
	net.Committed(1, 10)
	net.Crash(3, 0)
	for range 30 {
		net.Committed(1, 10)
	}
	net.Compact(1, 0)
	net.Compact(2, 2)
	net.Committed(2, 10)
	net.Restart(3)
	net.level()
	if net.Node(3).Snap.Index == 0 {
		t.Fatal("the member caught up without a snapshot, from entries that are gone")
	}
	net.Crash(3, 0)
	net.Committed(1, 10)
	net.Restart(3)
	net.Committed(3, 10)
	net.level()
}

func membership(t *testing.T, s suite) {
	net := s.net(t, 3, 9)
	net.Committed(1, 10)
	net.Add(4, protocol.Config{})
	net.Add(5, protocol.Config{})
	net.changed("learners", change(protocol.AddLearner, 4), change(protocol.AddLearner, 5))
	net.Committed(1, 10)
	net.level()
	net.changed("voters", change(protocol.AddVoter, 4), change(protocol.AddVoter, 5))
	net.level()
	net.changed("removal", change(protocol.RemoveMember, 1), change(protocol.RemoveMember, 2))
	net.Crash(1, 0)
	net.Crash(2, 0)
	net.Committed(4, 10)
	c := net.current()
	if len(c.Voters()) != 3 || c.Joint() || len(c.Removed) != 2 {
		t.Fatalf("members are %s", DescribeConfig(c))
	}
	if l := net.Leader(); l != nil {
		back := net.Change(l.ID, change(protocol.AddVoter, 1))
		if net.Refused(back) == protocol.ReasonNone {
			t.Fatal("a removed id came back")
		}
	}
	net.level()
}

func change(k protocol.ChangeKind, id protocol.MemberID) protocol.Change {
	return protocol.Change{Kind: k, Member: protocol.Member{ID: id}}
}

// changed asks any member that may know until the changes are active.
func (net *Net) changed(what string, changes ...protocol.Change) {
	net.t.Helper()
	if net.OneVoter && len(changes) > 1 {
		for _, c := range changes {
			net.changed(what, c)
		}
		return
	}
	tries := 0
	net.Until(what, func() bool {
		if inForce(net.current(), changes) {
			return true
		}
		if tries++; tries%20 == 1 {
			for _, n := range net.Nodes {
				net.Change(n.ID, changes...)
			}
			net.Settle()
		}
		return inForce(net.current(), changes)
	})
}

func inForce(c *protocol.Config, changes []protocol.Change) bool {
	for _, ch := range changes {
		m := c.Find(ch.Member.ID)
		switch ch.Kind {
		case protocol.AddVoter:
			if m == nil || m.Learner {
				return false
			}
		case protocol.AddLearner:
			if m == nil {
				return false
			}
		case protocol.RemoveMember:
			if m != nil {
				return false
			}
		}
	}
	return !c.Joint()
}

// determinism: the same inputs have exactly the same trace.
func determinism(t *testing.T, s suite) {
	var first []string
	for range 2 {
		var lines []string
		net := s.net(t, 3, 10)
		net.Trace = func(line string) { lines = append(lines, line) }
		for i := range 500 {
			net.chaos(faultsOf(10, 3), i)
		}
		if first == nil {
			first = lines
			continue
		}
		for i := range first {
			if i >= len(lines) || first[i] != lines[i] {
				t.Fatalf("line %d differs: %s", i, first[i])
			}
		}
	}
}

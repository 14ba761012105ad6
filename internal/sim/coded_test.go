package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// The scenarios of docs/internals/craft.md, 2.9, played by hand.

// coded returns a stage of members that code bodies of 300 bytes, with at most the given k.
func coded(k int) func(*fault.Settings) {
	return func(s *fault.Settings) {
		s.Core.Placement, s.Core.MaxK = protocol.PlacementCode, k
		s.Bodies = node.BodySettings{Share: 1, Min: 300, Max: 300, SegmentBytes: 32 << 10, Hedge: 20 * time.Millisecond, Retry: 50 * time.Millisecond, GatherBytes: 1 << 20}
	}
}

func craftStage(t *testing.T, nodes, k int) *script { return newStage(t, nodes, "", coded(k)) }

// putBody starts a write with a body at a member and returns at once.
func (s *script) putBody(id protocol.MemberID) *history.Operation {
	return s.writeBody(id, check.Append)
}

func (s *script) writeBody(id protocol.MemberID, kind check.Kind) *history.Operation {
	op := &history.Operation{Operation: check.Operation{Kind: kind, Key: "k0"}}
	op.Carry(len(s.History.Ops), s.World.Clients.DrawBody())
	s.ask(id, op)
	return op
}

// settled elects member 1, commits an entry, and gives member 1 time to get responses of the others.
func (s *script) settled() {
	s.t.Helper()
	s.elect(1)
	s.mustAck(s.put(1))
	s.wait(1)
}

// last returns the last index in a member's log.
func (s *script) last(id protocol.MemberID) protocol.Index {
	return s.Member(id).Inst.Core().Status().Last
}

func (s *script) commit(id protocol.MemberID) protocol.Index {
	return s.Member(id).Inst.Core().Status().Commit
}

// form returns the form of the body at an index on a member's disk.
func (s *script) form(id protocol.MemberID, i protocol.Index) check.Form {
	_, f := s.Court.First.Bodies.OnDisk(uint64(id), uint64(i))
	return f
}

// only lets entries and bodies through to these members alone. They do not learn the commit index.
func (s *script) only(ids ...protocol.MemberID) {
	s.Pass = func(m *protocol.Message) bool {
		switch m.Type {
		case message.Heartbeat:
			return false
		case message.Append, message.Bodies:
			return slices.Contains(ids, m.To) && len(m.Entries) > 0
		}
		return true
	}
}

// without drops all messages of these types.
func (s *script) without(types ...protocol.MessageType) {
	s.Pass = func(m *protocol.Message) bool {
		for _, t := range types {
			if m.Type == t {
				return false
			}
		}
		return true
	}
}

// hold keeps matching messages back. It returns a function that delivers them later.
func (s *script) hold(match func(*protocol.Message) bool) (deliver func()) {
	var held []*protocol.Message
	before := s.Pass
	s.Pass = func(m *protocol.Message) bool {
		if match(m) {
			c := *m
			held = append(held, &c)
			return false
		}
		return before == nil || before(m)
	}
	return func() {
		s.Pass = nil
		for _, m := range held {
			s.Send(m)
		}
	}
}

// readable demands that each of these members can read the value.
func (s *script) readable(ids ...protocol.MemberID) {
	s.t.Helper()
	for _, id := range ids {
		s.mustAck(s.get(id))
	}
}

// spread replicates a coded entry from leader 1 to some members, and checks that they have rows of it. It returns the
// operation and the entry's index.
func (s *script) spread(to ...protocol.MemberID) (*history.Operation, protocol.Index) {
	s.t.Helper()
	s.only(to...)
	op := s.putBody(1)
	s.wait(0.05)
	i := s.last(1)
	require.Equal(s.t, check.WholeBody, s.form(1, i))
	for _, id := range to {
		_, row := s.form(id, i).Row()
		require.True(s.t, row, "member %s holds %s", id, s.form(id, i))
	}
	return op, i
}

// codedThenWhole proposes a coded entry that does not become durable, and then an entry that reaches a majority. The
// leader and one more member stop (docs/internals/craft.md, G1).
func codedThenWhole(s *script) (coded, small *history.Operation) {
	s.settled()
	coded, i := s.spread(2, 3, 4)
	small = s.put(1)
	s.wait(0.04)
	if s.Broken == nil && s.Set.Mutant == "" {
		require.False(s.t, s.acked(coded) || s.acked(small), "k = 3 of five needs all five")
		require.Less(s.t, s.commit(1), i)
	}
	s.crash(1, 2)
	s.Pass = nil
	s.elect(3)
	s.wait(2)
	return coded, small
}

func TestCodedThenWholeThenTwoCrashes(t *testing.T) {
	s := craftStage(t, 5, 3)
	coded, small := codedThenWhole(s)
	require.False(t, coded.Effective || small.Effective, "two rows of three are not enough, and what follows goes with them")
	s.start(1, 2)
	s.passes()
}

// TestPaperFigure6 is figure 6 of the CRaft paper. The new leader recovers as many of the old leader's entries as it
// can. It deletes those that it cannot recover, which are not committed.
func TestPaperFigure6(t *testing.T) {
	for _, c := range []struct {
		name    string
		holders []protocol.MemberID
		kept    bool
	}{{"a: enough rows", []protocol.MemberID{2, 3}, true}, {"b: too few", []protocol.MemberID{2}, false}} {
		t.Run(c.name, func(t *testing.T) {
			s := craftStage(t, 5, 2)
			s.settled()
			op, i := s.spread(c.holders...)
			s.crash(1)
			s.Pass = nil
			s.elect(2)
			s.until("2 serves", func() bool { return s.commit(2) >= i })
			s.wait(0.5)
			require.Equal(t, c.kept, op.Effective)
			s.start(1)
			s.passes()
		})
	}
}

// oldTermAnswers: a new leader asks which members have a coded entry. One member responds, and after that an append
// of the old leader reaches it (G2).
func oldTermAnswers(s *script) {
	s.settled()
	s.Member(1).SetRate(0.2) // it still believes that it leads
	deliver := s.hold(func(m *protocol.Message) bool { return m.From == 1 && m.To == 5 && m.Type == message.Append })
	s.putBody(1)
	s.wait(0.05)
	i := s.last(1)
	before := s.Pass
	s.Pass = func(m *protocol.Message) bool {
		switch {
		case m.From == 1 && m.To != 5, m.To == 1 && m.From != 5:
			return false // 1 is alone with 5
		case m.From == 2 && m.To == 5:
			return m.Type == message.Holdings
		case m.To == 4:
			return m.Type != message.Holdings
		}
		return before(m)
	}
	s.elect(2)
	s.until("2 leads", func() bool { return s.last(2) >= i && s.termAt(2, i) == s.Member(2).Witness.Latest.Term })
	held := s.Pass
	deliver()
	s.Pass = held
	s.wait(0.2)
}

// termAt returns the term of the entry at an index of a member's disk.
func (s *script) termAt(id protocol.MemberID, i protocol.Index) protocol.Term {
	return protocol.Term(s.Court.First.Ledger.DurableTerm(uint64(id), uint64(i)))
}

func TestOldLeadersAppendAfterTheAnswer(t *testing.T) {
	s := craftStage(t, 5, 3)
	oldTermAnswers(s)
	s.passes()
}

// TestCandidateWithARowAndAVoterWithTheWhole: 3 was sent the whole copy, and 2, which has a row, is
// elected.
func TestCandidateWithARowAndAVoterWithTheWhole(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	op, i := s.spread(2, 3)
	s.Pass = func(m *protocol.Message) bool {
		return m.To < 4 && m.From < 4 && (m.Type != message.Bodies || m.To == 3)
	}
	s.until("3 is upgraded", func() bool { return s.form(3, i) == check.WholeBody })
	require.False(t, s.acked(op))
	s.crash(1)
	s.Pass = nil
	s.elect(2)
	s.until("it is recovered", func() bool { return op.Effective && s.form(2, i) == check.WholeBody })
	s.start(1)
	s.passes()
}

// TestABodyWithoutItsEntry: a member applies a committed entry that is not durable in its log yet. Bodies are written
// before the log. Power is lost between the two, and the state machine's own disk has the command. So the member
// keeps the body, for its state, and its log does not have the entry. It never acknowledged the entry, and reports to
// a new leader that it does not have it.
func TestABodyWithoutItsEntry(t *testing.T) {
	s := newStage(t, 5, "", func(set *fault.Settings) { coded(2)(set); set.Durable = true })
	s.settled()
	s.mustAck(s.putBody(1)) // 5 has a file of bodies now
	s.wait(1)
	m := s.Member(5)
	m.Stalled = s.Now() + time.Hour
	s.only(2, 3, 4)
	others := s.Pass
	s.Pass = func(m *protocol.Message) bool { return m.To == 5 || others(m) }
	op := s.putBody(1)
	s.mustAck(op)
	i := s.last(1)
	s.until("5 applies it", func() bool {
		return slices.ContainsFunc(s.machineBodies(5), func(r protocol.BodyRef) bool { return r.Index == i })
	})
	require.Equal(t, wal.StageBodySync, m.Writer.Steps.Stage())
	m.Disk.PowerAt, m.Stalled = 4, 0 // the power fails after the write of the body, its sync and the mark
	s.until("5 has no power", func() bool { return !m.Up })
	m.Saved = m.Machines.First.Freeze()
	s.crash(1)

	answered := false
	s.Pass = func(m *protocol.Message) bool {
		answered = answered || m.From == 5 && m.Type == message.HoldingsResp
		return m.Type != message.Append
	}
	s.start(5)
	require.Equal(t, check.RowForm(4), s.form(5, i))
	require.Less(t, s.last(5), i)
	s.elect(2)
	s.until("5 answers", func() bool { return answered })
	s.Pass = nil
	s.until("it is recovered", func() bool { return s.commit(2) > i && s.form(2, i) == check.WholeBody })
	s.start(1)
	s.passes()
}

// TestRespondersOfAllKinds: the asked members do not have the entry, have another one at its index, or have compacted
// it.
func TestRespondersOfAllKinds(t *testing.T) {
	t.Run("short and conflicting", func(t *testing.T) {
		s := craftStage(t, 5, 2)
		s.settled()
		op, i := s.spread(2)
		s.crash(1)
		s.without(message.Append) // 3 leads a term of its own, and no message leaves it
		s.crash(2)
		s.elect(3)
		s.wait(0.1)
		require.NotEqual(t, s.termAt(1, i), s.termAt(3, i))
		s.crash(3)
		s.Pass = nil
		s.start(1, 2)
		s.crash(1)
		s.elect(2)
		s.wait(0.5)
		require.False(t, op.Effective)
		s.start(1, 3)
		s.passes()
	})
	t.Run("compacted", func(t *testing.T) {
		s := newStage(t, 5, "", func(set *fault.Settings) { coded(2)(set); set.SnapshotBytes = 1 })
		s.settled()
		s.Pass = func(m *protocol.Message) bool { return m.To != 2 || m.Type == message.Append }
		op := s.putBody(1)
		i := s.last(1)
		s.until("2 has its row", func() bool { return s.form(2, i) == check.RowForm(1) })
		s.Pass = func(m *protocol.Message) bool { return m.To != 2 && m.From != 2 }
		s.mustAck(op)
		s.until("the others cut their logs", func() bool {
			done := true
			for _, m := range s.Members {
				if m.ID == 2 {
					continue
				}
				done = done && m.Inst.Core().Status().First > i
				m.Push(apply.ApplyItem{Due: true})
			}
			return done
		})
		require.Less(t, s.commit(2), i, "2 does not know")
		s.Pass = nil
		s.crash(1)
		s.elect(2)
		s.until("2 commits it", func() bool { return s.commit(2) >= i })
		s.readable(2, 3)
		s.start(1)
		s.passes()
	})
}

// TestCrashBetweenInfoAndBody: a new leader knows that enough rows exist, and waits for them.
func TestCrashBetweenInfoAndBody(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	op, i := s.spread(2, 3, 4)
	s.mustAck(op)
	require.Less(t, s.commit(2), i)
	s.crash(1)
	s.without(protocol.MsgFetchResp)
	s.elect(2)
	s.wait(0.2)
	s.crash(3, 4)
	s.Pass = nil
	s.wait(8)
	require.Equal(t, i, s.last(2), "nothing was deleted, and 2 does not lead")
	s.start(3)
	s.until("recovered", func() bool { m := s.Leader(); return m != nil && s.commit(m.ID) > i })
	s.start(1, 4)
	s.readable(2, 3)
	s.passes()
}

// TestCrashWhileDeleting: the new leader stops at different points of the deletion.
func TestCrashWhileDeleting(t *testing.T) {
	for delay := time.Duration(0); delay < 12*time.Millisecond; delay += time.Millisecond {
		s := craftStage(t, 5, 2)
		s.settled()
		op, _ := s.spread(2)
		s.crash(1)
		s.Pass = nil
		s.elect(2)
		s.Run(s.Now() + delay)
		s.crash(2)
		s.wait(3)
		s.start(2)
		s.wait(3)
		require.False(t, op.Effective)
		s.start(1)
		s.passes()
	}
}

// TestTwoPreparationsThatHearOthers: a first new leader could recover an entry, and stops. A second new leader gets
// responses of other members. It may delete the entry unless it was committed.
func TestTwoPreparationsThatHearOthers(t *testing.T) {
	for _, committed := range []bool{false, true} {
		s := craftStage(t, 5, 2)
		s.settled()
		holders := []protocol.MemberID{2, 3}
		if committed {
			holders = append(holders, 4)
		}
		op, i := s.spread(holders...)
		if committed {
			s.mustAck(op)
		}
		s.crash(1)
		s.without(protocol.MsgFetchResp)
		s.elect(2) // it knows that there are two rows
		s.wait(0.2)
		s.crash(2)
		s.Pass = nil
		s.elect(3)
		s.until("3 goes on", func() bool { return s.commit(3) >= i })
		s.wait(0.5)
		require.Equal(t, committed, op.Effective)
		s.start(1, 2)
		s.passes()
	}
}

func TestReelectionOfALeaderWithTheWhole(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	op, i := s.spread(2)
	s.split(1)
	s.until("1 gives up", func() bool { return roleOf(s.Member(1)) != protocol.Leader })
	s.Pass = nil
	fault.HealLinks(s.World)
	s.elect(1)
	s.mustAck(op)
	require.Equal(t, check.WholeBody, s.form(1, i))
	s.passes()
}

// TestFormsOutOfOrder: rows that arrive again after the whole copy change nothing. Nor do repeated responses about
// rows.
func TestFormsOutOfOrder(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	s.Pass = func(m *protocol.Message) bool { return m.To < 4 && m.From < 4 }
	var seen []*protocol.Message
	before := s.Pass
	s.Pass = func(m *protocol.Message) bool {
		if m.Type == message.Append || m.Type == message.AppendResp || m.Type == message.Bodies {
			c := *m
			seen = append(seen, &c)
		}
		return before(m)
	}
	op := s.putBody(1)
	i := s.last(1)
	s.mustAck(op)
	require.Equal(t, check.WholeBody, s.form(2, i))
	require.Equal(t, check.WholeBody, s.form(3, i))
	s.Pass = before
	for range 2 {
		for k := range seen {
			s.Send(seen[len(seen)-1-k])
		}
		s.wait(0.1)
	}
	require.Equal(t, check.WholeBody, s.form(2, i))
	require.Equal(t, check.WholeBody, s.form(3, i))
	s.Pass = nil
	s.crash(1)
	s.readable(2, 3)
	s.start(1)
	s.passes()
}

// TestPruneThenAnotherLeader: whole copies were needed to commit. When all members have a form of the body, two of
// them trim to rows. Then the leader, which has the whole copy, and one more member stop.
func TestPruneThenAnotherLeader(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	s.split(1, 2, 3)
	op := s.putBody(1)
	i := s.last(1)
	s.mustAck(op)
	require.Equal(t, check.WholeBody, s.form(3, i))
	fault.HealLinks(s.World)
	s.until("all hold something", func() bool { return s.form(4, i) != check.NoBody && s.form(5, i) != check.NoBody })
	for _, id := range []protocol.MemberID{2, 3} {
		m := s.Member(id)
		b, _ := m.Body.Store.Find(uint32(node.FirstInstance), uint64(i))
		form := protocol.RowForm(uint8(id - 1))
		whole := body.Fragment{Form: protocol.FormWhole, Bytes: op.Body}
		row, err := whole.Cut(b.K, form)
		require.NoError(t, err)
		m.SubmitBodies([]wal.Record{member.BodyRecord(body.RefOf(&b), form, row)}, func() {})
		s.wait(0.1)
		require.Equal(t, check.RowForm(uint8(id-1)), s.form(id, i))
	}
	s.crash(1, 5)
	s.until("another leader", func() bool { return s.Leader() != nil && s.Leader().ID != 1 })
	s.readable(2, 3, 4)
	s.start(1, 5)
	s.passes()
}

// TestAnswersThatATrimOvertakes: member 1 has a whole copy of an entry, and its disk stalls. A new leader commits the
// entry, and member 1 trims its copy once its log is cut. Its responses to that leader waited for the disk, which
// writes the row together with their records. So they leave late and claim the whole copy, of an entry that is
// committed.
func TestAnswersThatATrimOvertakes(t *testing.T) {
	s := newStage(t, 5, "", func(set *fault.Settings) {
		coded(2)(set)
		set.SnapshotBytes, set.Bodies.Scrub = 1, time.Hour
	})
	s.settled()
	op, i := s.spread(2, 3)
	old := s.Member(1)
	old.Stalled = s.Now() + time.Hour
	s.Pass = func(m *protocol.Message) bool { return m.From != 1 }
	s.elect(2) // 1's vote waits for its disk, and its later responses to 2 too
	s.Pass = nil
	s.until("1 commits it", func() bool { return op.Effective && s.commit(1) >= i })
	s.wait(1)
	newest, _, err := old.Snaps.Newest()
	require.NoError(t, err)
	at := newest.Meta.Cursor.Point(node.FirstInstance).Index
	require.GreaterOrEqual(t, at, i)
	old.Do(func() {
		s := old.MemberInstance
		s.CutLog(s.Hosted.SnapshotWritten(at, at, 0, 0, func(protocol.MemberID) protocol.Index { return 0 }))
	})
	s.until("1 cuts its log", func() bool { return old.Inst.Core().Status().First > i })
	old.WhenAwake(old.ReadAll)
	s.until("1 trims its copy", func() bool { return s.Events.Of(node.WholeCopiesTrimmed) > 0 })
	require.Equal(t, check.WholeBody, s.form(1, i))
	late := 0
	s.Pass = func(m *protocol.Message) bool {
		for _, h := range m.Holdings {
			if m.From == 1 && m.Type != protocol.MsgFetchResp && h.Index == i && h.Form == protocol.FormWhole {
				late++
			}
		}
		return true
	}
	old.Stalled = 0
	s.until("it is written", func() bool { return s.form(1, i) == check.RowForm(0) })
	s.wait(1)
	require.Positive(t, late)
	s.readable(1, 2, 3, 4, 5)
	s.passes()
}

// TestManyK: k changes from entry to entry as members come and go. All entries stay readable.
func TestManyK(t *testing.T) {
	s := craftStage(t, 5, 3)
	s.settled()
	ks := map[uint8]bool{}
	for round := range 3 {
		for _, out := range [][]protocol.MemberID{nil, {5}, {4, 5}, {2, 3}} {
			s.split(out...)
			if round > 0 {
				s.wait(1) // the leader knows the unreachable members, and need not complete anything
			}
			s.mustAck(s.putBody(1))
			e := s.machineBodies(1)
			ks[e[len(e)-1].K] = true
		}
	}
	require.Len(t, ks, 3, "%v", ks)
	fault.HealLinks(s.World)
	s.wait(1)
	s.crash(1, 2)
	s.readable(3, 4, 5)
	s.start(1, 2)
	s.passes()
}

// machineBodies returns the bodies that a member's state references.
func (s *script) machineBodies(id protocol.MemberID) (refs []protocol.BodyRef) {
	if err := s.Member(id).Machines.First.LiveBodies(func(r protocol.BodyRef) { refs = append(refs, r) }); err != nil {
		s.t.Fatal(err)
	}
	return refs
}

// TestLiveOscillates: the number of reachable members changes around F+k, faster than the leader notices.
func TestLiveOscillates(t *testing.T) {
	s := craftStage(t, 5, 2)
	s.settled()
	var ops []*history.Operation
	for n := range 40 {
		switch n % 4 {
		case 0:
			s.split(5)
		case 1:
			s.split(4, 5)
		case 2:
			s.split(3, 4)
		case 3:
			fault.HealLinks(s.World)
		}
		ops = append(ops, s.putBody(1))
		s.wait(0.15)
	}
	fault.HealLinks(s.World)
	for _, op := range ops {
		s.mustAck(op)
	}
	s.crash(1)
	s.readable(2, 3, 4, 5)
	s.start(1)
	s.passes()
}

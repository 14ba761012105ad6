package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

func TestTheWeaverWakesWhoWouldSkip(t *testing.T) {
	var w WantedRounds
	thread := func(id protocol.InstanceID, round, want protocol.Round, able, idle bool) InstanceRounds {
		th := InstanceRounds{Instance: id, Round: round, Able: able, Idle: idle}
		if want > 0 {
			th.Want = order.Slot{Round: want, Instance: id}
		}
		return th
	}
	require.Empty(t, w.Set(thread(2, 0, 0, true, true), nil), "nothing is wanted")
	require.Empty(t, w.Set(thread(1, 0, 0, true, true), nil))
	require.Empty(t, w.Set(thread(3, 0, 0, false, true), nil))
	require.Equal(t, []protocol.InstanceID{2}, w.Set(thread(1, 1, 1, true, false), nil),
		"the one led elsewhere is not woken")
	require.Empty(t, w.Set(thread(1, 1, 1, true, true), nil), "the want did not rise")
	require.Equal(t, order.Slot{Round: 1, Instance: 1}, w.Want(2))
	require.Zero(t, w.Want(1), "what one wants itself does not count")

	const far, short, over = order.Ahead / 2, order.Ahead/2 + 2, order.Ahead + 3
	w.Set(thread(2, 1+order.Ahead, 0, true, true), nil)
	require.Empty(t, w.Set(thread(1, 2, 2, true, false), nil), "it is far enough ahead")
	require.Empty(t, w.Set(thread(1, far, far, true, false), nil))
	require.Equal(t, []protocol.InstanceID{2}, w.Set(thread(1, short, short, true, false), nil), "its lead got short")
	w.Set(thread(2, 1+order.Ahead, 0, true, false), nil)
	require.Empty(t, w.Set(thread(1, order.Ahead, order.Ahead, true, false), nil),
		"one with batches of its own skips only what it must")
	require.Equal(t, []protocol.InstanceID{2}, w.Set(thread(1, over, over, true, false), nil))
	require.NoError(t, w.Check())
	w.Forget(1)
	require.Zero(t, w.Want(2))
}

func TestWorkGoesWhereItIsLedAndThereIsLittle(t *testing.T) {
	const small, large = false, true
	prefer := func(large bool, loads ...Load) int {
		return Prefer(len(loads), large, func(i int) Load { return loads[i] })
	}
	led, ours := Load{Led: true}, Load{Led: true, Leads: true}
	busy := Load{Led: true, Leads: true, Pending: 3}
	require.Equal(t, 0, prefer(small, ours, ours, ours), "the same one while little is to do")
	require.Equal(t, 0, prefer(small, busy, ours, ours))
	require.Equal(t, 1, prefer(large, busy, ours, ours), "large batches gain by others")
	full := Load{Led: true, Leads: true, Pending: fewBatches + 1}
	require.Equal(t, 1, prefer(small, full, busy, ours), "its links are full")
	for _, size := range []bool{small, large} {
		require.Equal(t, 2, prefer(size, led, led, full), "rather here than elsewhere")
		require.Equal(t, 1, prefer(size, Load{}, led, Load{Pending: 0}), "rather to some leader than to none")
	}
	rounds := []Load{{Led: true, Leads: true, Round: 70}, {Led: true, Leads: true, Round: 5}, {Led: true, Leads: true,
		Round: 6}}
	require.Equal(t, 1, prefer(large, rounds...), "the one that is most behind")
	require.Equal(t, 0, prefer(small, rounds...), "the others skip ahead of it")

	require.False(t, Large(largeBatch-1, false), "it may grow as in one instance")
	require.True(t, Large(largeBatch, false))
	require.False(t, Large(100, true), "one of many that are cut small")
	require.True(t, Large(fullBatch, true))
}

// wovenInstance is an instance of a merged log around a scripted core.
func wovenInstance(id protocol.InstanceID, role protocol.Role, leader protocol.MemberID) (*scriptedCore, *Instance) {
	c := &scriptedCore{status: protocol.Status{Self: 1, Leader: leader, Term: 1, Role: role}}
	return c, NewInstance(InstanceConfig{Self: 1, Instance: id, Session: membertest.Session, RetryAfter: time.Second,
		GiveUp: 10 * time.Second, Merged: &protocol.Recovered{}}, c)
}

// appends lets the next step append what is proposed at an index.
func (c *scriptedCore) appends(index protocol.Index, kind protocol.EntryKind) {
	c.then(func(eff *protocol.Effects) {
		e := protocol.Entry{Kind: kind, Index: index}
		if p, ok := c.inputs[len(c.inputs)-1].(protocol.Propose); ok {
			e = p.Entries[0]
		}
		e.Seal(index, 1, make([]byte, protocol.HeadSize))
		eff.Persist = append(eff.Persist, protocol.Record{Kind: protocol.RecordEntry, Entry: e})
	})
}

func skipped(c *scriptedCore) (rounds []protocol.Round) {
	for _, in := range c.inputs {
		if p, ok := in.(protocol.Propose); ok && p.Entries[0].Kind == protocol.EntrySkip {
			rounds = append(rounds, p.Entries[0].Round())
		}
	}
	return rounds
}

func TestALeaderSkipsOneAtATime(t *testing.T) {
	c, in := wovenInstance(2, protocol.Leader, 1)
	var out Outbox
	c.appends(1, protocol.EntrySkip)
	in.SkipRounds(0, order.Slot{Round: 3, Instance: 1}, &out)
	require.Equal(t, []protocol.Round{3 + order.Ahead}, skipped(c))
	require.False(t, in.Rounds(0).Able, "a skip is under way")
	in.SkipRounds(0, order.Slot{Round: 5000, Instance: 1}, &out)
	require.Len(t, skipped(c), 1)

	c.then(func(eff *protocol.Effects) { eff.Commit = append(eff.Commit, out.Persist0(t)) })
	in.Step(0, protocol.Persisted{}, &out)
	require.True(t, in.Rounds(0).Able)
	c.appends(2, protocol.EntryBatch)
	in.Step(time.Second, &protocol.Message{}, &out)
	require.Equal(t, order.Slot{Round: 3 + order.Ahead + 1, Instance: 2}, in.Rounds(time.Second).Want)
	c.appends(3, protocol.EntrySkip)
	in.SkipRounds(time.Second, order.Slot{Round: 5000, Instance: 1}, &out)
	require.Equal(t, []protocol.Round{3 + order.Ahead, 4999}, skipped(c), "one that is busy skips no further than it must")
}

// Persist0 is the entry that was persisted first.
func (o *Outbox) Persist0(t *testing.T) protocol.Entry {
	e, _, err := protocol.DecodeEntry(append(o.Persist[0].Parts[0], o.Persist[0].Parts[1]...), true)
	require.NoError(t, err)
	return e
}

func TestAFollowerRemindsTheLeader(t *testing.T) {
	_, in := wovenInstance(2, protocol.Follower, 3)
	var out Outbox
	want := order.Slot{Round: 7, Instance: 1}
	in.Remind(time.Second, 50*time.Millisecond, want, &out)
	require.Empty(t, out.Send, "the leader may know already")
	in.Remind(time.Second+40*time.Millisecond, 50*time.Millisecond, want, &out)
	require.Empty(t, out.Send)
	in.Remind(time.Second+60*time.Millisecond, 50*time.Millisecond, want, &out)
	require.Len(t, out.Send, 1)
	m := out.Send[0]
	require.Equal(t, protocol.MemberID(3), m.To)

	c, leader := wovenInstance(2, protocol.Leader, 1)
	leader.Step(0, m, &out)
	require.Empty(t, c.inputs, "it does not concern the core")
	leader.SkipRounds(0, order.Slot{}, &out)
	require.Equal(t, []protocol.Round{7 + order.Ahead}, skipped(c))
}

func TestBatchesOfARetiredInstanceAreProposedElsewhere(t *testing.T) {
	_, in := wovenInstance(2, protocol.Leader, 1)
	var out Outbox
	var got []string
	b := membertest.OneCommand(9, "x", &got)
	in.Propose(0, b, &out)
	require.Equal(t, []*intake.Batch{b}, in.Retire())
	require.Zero(t, in.Pending())

	c, other := wovenInstance(1, protocol.Leader, 1)
	other.Propose(0, membertest.OneCommand(12, "y", &got), &out)
	other.Propose(0, b, &out)
	require.Equal(t, [][]uint64{{12}, {9}}, proposals(c), "with the same number, however late")
	require.NoError(t, other.Check())
	require.Equal(t, member.ErrMaybeCommitted, b.Abandoned(), "nobody knows what became of it before")
}

// siblings are instances that can be seen, and that count how often they are woken.
type siblings struct {
	status []*protocol.Status
	woken  []int
}

func (s *siblings) IDs() []protocol.InstanceID    { return []protocol.InstanceID{1, 2}[:len(s.status)] }
func (s *siblings) Load(int) Load                 { return Load{} }
func (s *siblings) Status(i int) *protocol.Status { return s.status[i] }
func (s *siblings) Wake(i int)                    { s.woken = append(s.woken, i) }

// TestBatchesOfALaneAreForTheFirstInstance: other instances leave them to it while it has a path for them.
func TestBatchesOfALaneAreForTheFirstInstance(t *testing.T) {
	leader, own := protocol.Route{To: 2, Term: 1}, protocol.Route{To: 1}
	s := &siblings{status: []*protocol.Status{{Routes: []protocol.Route{leader, own}}, {}}}
	require.True(t, HasPath(s, 1))
	require.False(t, HasPath(s, 0))
	s.status[0].Routes[1] = leader
	require.False(t, HasPath(s, 1), "as any other")
	s.status[0].Routes = nil
	require.False(t, HasPath(s, 1), "it has no lanes")
}

// TestAnIncarnationDoesNotEndEarlierOnesTooSoon: see docs/internals/lcr.md, "Several instances".
func TestAnIncarnationDoesNotEndEarlierOnesTooSoon(t *testing.T) {
	s := &siblings{status: []*protocol.Status{{Owes: true}, {}}}
	_, in := wovenInstance(2, protocol.Leader, 1)
	low := func(instance protocol.InstanceID, proposed int) uint64 {
		h := &Hosted{cfg: HostedConfig{Instance: instance}, inst: in}
		h.calls.Siblings = func() Siblings { return s }
		b := membertest.OneCommand(9, "x", nil)
		b.Entry.Low, b.Proposed = 3, proposed
		h.keepEarlier(b, s)
		return b.Entry.Low
	}
	require.EqualValues(t, 0, low(2, 0))
	require.EqualValues(t, 3, low(2, 1), "it was proposed before")
	require.EqualValues(t, 3, low(1, 0), "its log has what was accepted before")
	s.status[0].Owes = false
	require.EqualValues(t, 3, low(2, 0))
}

// rounds are siblings that fill so many rounds.
type rounds []protocol.Round

func (s rounds) IDs() []protocol.InstanceID  { return []protocol.InstanceID{1, 4, 5}[:len(s)] }
func (s rounds) Load(i int) Load             { return Load{Round: s[i]} }
func (s rounds) Status(int) *protocol.Status { return nil }
func (s rounds) Wake(int)                    {}

func TestReadsAskTheInstanceForWhichNoOtherHasToSkip(t *testing.T) {
	require.Zero(t, ReadThrough(rounds{3}), "there is only one")
	require.EqualValues(t, 4, ReadThrough(rounds{9, 3, 8}))
	require.EqualValues(t, 1, ReadThrough(rounds{3, 3, 3}), "its slot is the first one")
}

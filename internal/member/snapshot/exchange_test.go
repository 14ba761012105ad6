package snapshot

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// exchangeNotes is a member that writes down what its StateExchange asks of it.
type exchangeNotes struct {
	now    time.Duration
	at     order.Cursor
	told   map[protocol.InstanceID][]protocol.Input
	pushed []apply.ApplyItem
	views  []protocol.MemberID
	sent   []*member.SnapshotOffer
	asked  []StateQuestion
	ended  int
}

func (n *exchangeNotes) Now() time.Duration                    { return n.now }
func (n *exchangeNotes) At() (order.Cursor, []protocol.Config) { return n.at, nil }
func (n *exchangeNotes) InForce() []protocol.InstanceID        { return n.at.Instances() }
func (n *exchangeNotes) Push(it apply.ApplyItem)               { n.pushed = append(n.pushed, it) }
func (n *exchangeNotes) View(to protocol.MemberID)             { n.views = append(n.views, to) }
func (n *exchangeNotes) Ended()                                { n.ended++ }

func (n *exchangeNotes) Tell(instance protocol.InstanceID, in protocol.Input) {
	n.told[instance] = append(n.told[instance], in)
}

func (n *exchangeNotes) Send(_ protocol.MemberID, o *member.SnapshotOffer, _ member.Snapshot) {
	n.sent = append(n.sent, o)
}

func (n *exchangeNotes) AskState(_ protocol.MemberID, q StateQuestion) { n.asked = append(n.asked, q) }

// standsAt is a snapshot of two instances that stand at these indexes, at the start of a round.
func standsAt(round protocol.Round, one, two protocol.Index) member.Meta {
	c := order.Begin(2, true)
	c.Next.Round = round
	c.Points[0].Index, c.Points[1].Index = one, two
	return member.Bootstrap(c, []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}})
}

func newExchangeNotes(round protocol.Round, one, two protocol.Index) (*exchangeNotes, *StateExchange) {
	n := &exchangeNotes{at: standsAt(round, one, two).Cursor, told: map[protocol.InstanceID][]protocol.Input{}}
	return n, NewStateExchange(n, time.Second, "")
}

// TestOneStreamServesAllThatAsk: it is sent once. Each instance that asked learns how it ended.
func TestOneStreamServesAllThatAsk(t *testing.T) {
	for _, broken := range []error{nil, errors.New("the link broke")} {
		n, x := newExchangeNotes(9, 20, 30)
		x.Ask(2, &member.SnapshotOffer{Instance: 1, Term: 4, After: 7})
		x.Ask(2, &member.SnapshotOffer{Instance: 2, Term: 5, After: 8})
		x.Ask(2, &member.SnapshotOffer{Instance: 1, Term: 6, After: 9})
		require.Equal(t, []protocol.MemberID{2}, n.views)
		require.Zero(t, x.Streaming(2, 1), "where it stands is not known yet")
		x.Viewed(2, apply.StateView{Meta: standsAt(9, 20, 30)})
		require.EqualValues(t, 30, x.Streaming(2, 2))
		require.Len(t, n.sent, 1)
		require.NoError(t, n.sent[0].Check())
		require.Equal(t, [3]uint64{1, 4, 7},
			[3]uint64{uint64(n.sent[0].Instance), uint64(n.sent[0].Term), uint64(n.sent[0].After)})
		x.Sent(2, broken)
		one, two := protocol.SnapshotSent{To: 2, Index: 20}, protocol.SnapshotSent{To: 2, Index: 30}
		if broken != nil {
			one.Index, two.Index = 0, 0
		}
		require.Equal(t, map[protocol.InstanceID][]protocol.Input{1: {one}, 2: {two}}, n.told)
		x.Ask(2, &member.SnapshotOffer{})
		require.Len(t, n.views, 2, "the next one begins anew")
		x.Viewed(2, apply.StateView{Err: member.ErrStopped})
		require.Len(t, n.sent, 1)
		x.Ask(2, &member.SnapshotOffer{})
		require.Len(t, n.views, 3, "that one has ended")
	}
}

// TestAReceivedSnapshotIsTold: the term is for the instance whose leader sent it.
func TestAReceivedSnapshotIsTold(t *testing.T) {
	n, x := newExchangeNotes(9, 20, 30)
	o := &member.SnapshotOffer{Instance: 2, Term: 5, Meta: standsAt(50, 60, 70), HasState: true}
	offered := func(want SnapshotVerdict) {
		t.Helper()
		got, err := x.Offered(3, o)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	offered(IntakeTake)
	offered(IntakeWait)
	require.Empty(t, n.told, "it is not durable")
	x.Received(3, o, errors.New("the link broke"))
	require.Empty(t, n.told)
	require.Equal(t, 1, n.ended)
	offered(IntakeTake)
	x.Received(3, o, nil)
	require.Equal(t, 2, n.ended)
	one := protocol.SnapshotReceived{From: 3, Base: o.Base(1)}
	two := protocol.SnapshotReceived{From: 3, Term: 5, Base: o.Base(2)}
	require.Equal(t, map[protocol.InstanceID][]protocol.Input{1: {one}, 2: {two}}, n.told)
	require.Empty(t, n.pushed, "the state is good, and both instances are in force in it")
	offered(IntakeKnown)
	require.Len(t, n.told[2], 2, "the sender should learn how far this member is")

	bad := *o
	bad.Others = nil
	_, err := x.Offered(3, &bad)
	require.ErrorAs(t, err, new(*protocol.CorruptError))
	bad = *o
	bad.HasState = false
	_, err = x.Offered(3, &bad)
	require.ErrorAs(t, err, new(*protocol.CorruptError))
}

// TestARetiredInstanceIsPassed: nothing is told to an instance that is retired in the snapshot. The
// snapshot is installed for it, because the other instance may have everything.
func TestARetiredInstanceIsPassed(t *testing.T) {
	n, x := newExchangeNotes(9, 20, 30)
	meta := standsAt(50, 60, 70)
	meta.Cursor.Points, meta.Others, meta.Cursor.Fresh = meta.Cursor.Points[:1], nil, 3
	require.True(t, meta.Cursor.Retired(2))
	o := &member.SnapshotOffer{Meta: meta, HasState: true}
	_, err := x.Offered(3, o)
	require.NoError(t, err)
	x.Received(3, o, nil)
	require.Len(t, n.told[1], 1)
	require.Empty(t, n.told[2])
	require.Len(t, n.pushed, 1)
	require.Equal(t, protocol.InstanceID(2), n.pushed[0].Commit.Instance)
	require.NotNil(t, n.pushed[0].Install)

	other, y := newExchangeNotes(9, 20, 30)
	y.Missing(3, 2)
	require.Empty(t, other.views, "it is in force here")
	other.at = meta.Cursor
	y.Missing(3, 2)
	require.Equal(t, []protocol.MemberID{3}, other.views)
}

// TestAStateIsAskedFor: a member answers by what it has. The one that asks does so again until a
// snapshot comes, and then waits for what Apply says.
func TestAStateIsAskedFor(t *testing.T) {
	st := &protocol.Status{Self: 1, Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}}
	sick, x := newExchangeNotes(9, 20, 30)
	well, y := newExchangeNotes(8, 19, 29)
	x.Tend(st)
	require.Empty(t, sick.asked, "the state is good")
	needs := sick.at
	x.Damaged(&needs)
	ask := func(times int) StateQuestion {
		t.Helper()
		sick.now += time.Second
		x.Tend(st)
		x.Tend(st)
		require.Len(t, sick.asked, times)
		return sick.asked[times-1]
	}
	q := ask(1)
	require.ErrorAs(t, x.StateAsked(2, &q), new(*member.NoStateError), "its own is damaged")
	err := y.StateAsked(1, &q)
	require.ErrorAs(t, err, new(*member.NoStateError), "it is behind")
	x.Answered(q, err)
	q = ask(2)
	well.at = sick.at
	require.NoError(t, y.StateAsked(1, &q))
	x.Answered(q, nil)
	q = ask(3)
	require.True(t, q.Again)
	require.NoError(t, y.StateAsked(1, &q), "it is on its way")
	require.Len(t, well.views, 1)
	y.Viewed(1, apply.StateView{Err: errors.New("a key is damaged")})
	require.ErrorAs(t, y.StateAsked(1, &q), new(*member.NoStateError), "not any more")

	o := &member.SnapshotOffer{Meta: standsAt(9, 20, 30), HasState: true}
	verdict, err := x.Offered(2, o)
	require.NoError(t, err)
	require.Equal(t, IntakeTake, verdict, "it is no further, but the state in it is good")
	x.Answered(q, &member.NoStateError{})
	ask(3) // nothing is asked while it is being received
	x.Received(2, o, nil)
	require.True(t, sick.pushed[0].Repair)
	ask(3) // nor while Apply looks at it
	verdict, err = x.Offered(2, o)
	require.NoError(t, err)
	require.Equal(t, IntakeKnown, verdict, "one that came may do")
	x.Useless()
	q = ask(4)
	require.False(t, q.Again)
	require.NoError(t, x.Check())
	require.True(t, x.Repairing())
	x.Damaged(nil)
	require.False(t, x.Repairing())
	require.NoError(t, x.Check())
	sick.now += time.Hour
	x.Tend(st)
	require.Len(t, sick.asked, 4)
}

// TestAnOfferWithSectionsThatNobodyKnowsIsRefused: it is not even received.
func TestAnOfferWithSectionsThatNobodyKnowsIsRefused(t *testing.T) {
	n, x := newExchangeNotes(9, 1, 0)
	meta := membertest.MetaAt(5, 5, 1)
	meta.Sections = []member.SectionState{{Instance: 1,
		Section: protocol.Section{Name: "tally", Version: 2, Data: []byte("5")}}}
	_, err := x.Offered(3, &member.SnapshotOffer{Meta: meta, HasState: true})
	require.ErrorContains(t, err, "is not known, nor is any other")
	require.Empty(t, n.told)
}

package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

// scriptedCore answers every step with the effects that the test put in its way.
type scriptedCore struct {
	status protocol.Status
	inputs []protocol.Input
	next   []func(*protocol.Effects)
}

func (c *scriptedCore) Step(_ time.Duration, in protocol.Input, out *protocol.Effects) {
	c.inputs = append(c.inputs, in)
	if len(c.next) > 0 {
		f := c.next[0]
		c.next = c.next[1:]
		f(out)
	}
}
func (c *scriptedCore) Check() error            { return nil }
func (c *scriptedCore) Status() protocol.Status { return c.status }

func (c *scriptedCore) then(f func(*protocol.Effects)) { c.next = append(c.next, f) }

func newScripted(leader protocol.MemberID) (*scriptedCore, *Instance) {
	c := &scriptedCore{status: protocol.Status{Self: 1, Leader: leader, Term: 1}}
	return c, NewInstance(InstanceConfig{Self: 1, Instance: 1, Session: membertest.Session, RetryAfter: time.Second,
		GiveUp: 10 * time.Second}, c)
}

func proposals(c *scriptedCore) (out [][]uint64) {
	for _, in := range c.inputs {
		if p, ok := in.(protocol.Propose); ok {
			var seqs []uint64
			for _, e := range p.Entries {
				seqs = append(seqs, e.ID.Seq)
			}
			out = append(out, seqs)
		}
	}
	return out
}

func TestAnswersWaitForTheDisk(t *testing.T) {
	c, in := newScripted(2)
	var out Outbox
	ack := &protocol.Message{Type: membertest.MsgAck, To: 2}
	c.then(func(e *protocol.Effects) {
		e.Persist = append(e.Persist, protocol.Record{Kind: protocol.RecordState})
		e.Release = append(e.Release, ack)
		e.Seq = 1
	})
	in.Step(0, &protocol.Message{Type: membertest.MsgLog}, &out)
	require.Empty(t, out.Send)
	require.Len(t, out.Persist, 1)
	require.NoError(t, in.Check())

	c.then(func(e *protocol.Effects) { // nothing new to persist, but the first is not durable yet
		e.Release = append(e.Release, ack)
		e.Seq = 2
	})
	in.Step(0, &protocol.Message{Type: membertest.MsgLog}, &out)
	require.Empty(t, out.Send)

	in.Step(0, protocol.Persisted{Seq: 1}, &out)
	require.Len(t, out.Send, 2, "both asserted only what record 1 made durable")

	c.then(func(e *protocol.Effects) { e.Release = append(e.Release, ack); e.Seq = 3 })
	in.Step(0, &protocol.Message{Type: membertest.MsgLog}, &out)
	require.Len(t, out.Send, 3, "everything is durable already")
}

// Of messages that leave when the same write is durable, a later one replaces an earlier one to the same member that
// says less. An earlier one that leaves sooner is sent.
func TestLaterAnswersReplaceEarlierOnes(t *testing.T) {
	c, in := newScripted(2)
	in.cfg.Codec = &protocol.Codec{Replaces: func(later, earlier *protocol.Message) bool {
		return later.Context >= earlier.Context
	}}
	var out Outbox
	answer := func(seq uint64, to protocol.MemberID, context uint64) *protocol.Message {
		m := &protocol.Message{Type: membertest.MsgAck, To: to, Context: context}
		c.then(func(e *protocol.Effects) {
			e.Persist = append(e.Persist, protocol.Record{Kind: protocol.RecordState})
			e.Release = append(e.Release, m)
			e.Seq = seq
		})
		in.Step(0, &protocol.Message{Type: membertest.MsgLog}, &out)
		return m
	}
	first := answer(1, 2, 1)
	answer(2, 2, 2)
	other, more, less := answer(3, 3, 1), answer(4, 2, 4), answer(5, 2, 3)
	in.Step(0, protocol.Persisted{Seq: 1}, &out)
	require.Equal(t, []*protocol.Message{first}, out.Send)
	in.Step(0, protocol.Persisted{Seq: 5}, &out)
	require.Equal(t, []*protocol.Message{first, other, more, less}, out.Send)
	require.NoError(t, in.Check())
}

func TestProposalsFollowTheLeader(t *testing.T) {
	c, in := newScripted(0)
	var out Outbox
	in.Propose(0, membertest.Sealed(1, "a"), &out)
	in.Propose(0, membertest.Sealed(2, "b"), &out)
	require.Empty(t, proposals(c), "no leader is known yet")

	elect := func(leader protocol.MemberID, term protocol.Term) {
		c.status.Leader, c.status.Term = leader, term
		c.then(func(e *protocol.Effects) { e.Changed = true })
		in.Step(time.Second, &protocol.Message{}, &out)
	}
	elect(2, 1)
	require.Equal(t, [][]uint64{{1, 2}}, proposals(c))
	in.Step(time.Second, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 1, "not repeated while there is time")
	elect(3, 2)
	require.Equal(t, [][]uint64{{1, 2}, {1, 2}}, proposals(c), "a new leader gets them again")
	in.Step(2500*time.Millisecond, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 3, "unanswered for too long")

	c.then(func(e *protocol.Effects) {
		e.Commit = append(e.Commit,
			protocol.Entry{Kind: protocol.EntryBatch, ID: protocol.ProposalID{Session: membertest.Session, Seq: 1}})
	})
	in.Step(2600*time.Millisecond, &protocol.Message{}, &out)
	require.Len(t, out.Own, 1)
	require.Equal(t, 1, in.Pending())
}

func TestBodiesAreNotForwardedAgainTooSoon(t *testing.T) {
	c, in := newScripted(2)
	var out Outbox
	b := intake.NewBatch(0, 16, 1)
	b.Add([]byte("a"), func(any, error) {})
	b.SetBody(make([]byte, 4<<20))
	b.Seal(membertest.Session, 1, 1)
	in.Propose(0, b, &out)
	body := &c.inputs[len(c.inputs)-1].(protocol.Propose).Entries[0].Body[0]
	in.Step(4900*time.Millisecond, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 1, "it may be on its way still")
	in.Step(5*time.Second, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 2)
	require.Same(t, body, &c.inputs[len(c.inputs)-1].(protocol.Propose).Entries[0].Body[0], "the same bytes")
	in.Step(6*time.Second, protocol.Unreachable{Member: 3}, &out)
	in.Step(6*time.Second, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 2)
	in.Step(7*time.Second, protocol.Unreachable{Member: 2}, &out)
	in.Step(7*time.Second, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 3, "the link to the leader broke")
	in.Step(13*time.Second, protocol.Tick{}, &out)
	require.Empty(t, out.Failed)
	in.Step(14*time.Second, protocol.Tick{}, &out)
	require.Len(t, out.Failed, 1)
}

// TestForwardedBatchesLeaveAsThereIsRoom: what came while there was no leader is not sent to the
// new leader all at once, and it keeps its order.
func TestForwardedBatchesLeaveAsThereIsRoom(t *testing.T) {
	c, in := newScripted(0)
	in.cfg.ProposedBytes = 250
	var out Outbox
	for seq := range uint64(5) {
		in.Propose(0, membertest.Sealed(seq+1, string(make([]byte, 98))), &out) // 99 bytes
	}
	in.Propose(0, membertest.Sealed(6, string(make([]byte, 998))), &out)
	lead := func(leader protocol.MemberID, term protocol.Term) {
		c.status.Leader, c.status.Term = leader, term
		c.then(func(e *protocol.Effects) { e.Changed = true })
		in.Step(time.Second, &protocol.Message{}, &out)
	}
	commit := func(seq uint64) {
		c.then(func(e *protocol.Effects) {
			e.Commit = append(e.Commit,
				protocol.Entry{Kind: protocol.EntryBatch, ID: protocol.ProposalID{Session: membertest.Session, Seq: seq}})
		})
		in.Step(time.Second, &protocol.Message{}, &out)
	}
	lead(2, 1)
	require.Equal(t, [][]uint64{{1, 2}}, proposals(c))
	in.Propose(time.Second, membertest.Sealed(7, "small"), &out)
	in.Step(1100*time.Millisecond, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 1, "nothing overtakes what waits")
	commit(1)
	require.Equal(t, []uint64{3}, proposals(c)[1])
	commit(2)
	commit(3)
	require.Equal(t, [][]uint64{{4}, {5}}, proposals(c)[2:])
	commit(4)
	require.Len(t, proposals(c), 4)
	commit(5)
	require.Equal(t, []uint64{6}, proposals(c)[4], "one of any size may be out")
	commit(6)
	require.Equal(t, []uint64{7}, proposals(c)[5])
	in.Propose(time.Second, membertest.Sealed(8, string(make([]byte, 998))), &out)
	in.Step(20*time.Second, protocol.Tick{}, &out)
	require.Len(t, out.Failed, 2)
	require.ErrorIs(t, out.Failed[0].Err, member.ErrMaybeCommitted)
	require.ErrorIs(t, out.Failed[1].Err, member.ErrOverloaded, "it waited for room")
}

func TestALeaderOfItsOwnGetsEverythingAtOnce(t *testing.T) {
	c, in := newScripted(1)
	in.cfg.ProposedBytes = 1
	var out Outbox
	in.Propose(0, membertest.Sealed(1, "a"), &out)
	in.Propose(0, membertest.Sealed(2, "b"), &out)
	require.Len(t, proposals(c), 2)
}

func TestGivenUpProposalsSayWhetherTheyMayHaveHappened(t *testing.T) {
	_, in := newScripted(0)
	var out Outbox
	in.Propose(0, membertest.Sealed(1, "never handed over"), &out)
	in.Step(11*time.Second, protocol.Tick{}, &out)
	require.ErrorIs(t, out.Failed[0].Err, member.ErrNoLeader)

	_, in = newScripted(2)
	out = Outbox{}
	in.Propose(0, membertest.Sealed(1, "handed over"), &out)
	in.Step(11*time.Second, protocol.Tick{}, &out)
	require.ErrorIs(t, out.Failed[0].Err, member.ErrMaybeCommitted)

	c, in := newScripted(2)
	out = Outbox{}
	refuse := func(e *protocol.Effects) {
		e.Reject = append(e.Reject,
			protocol.Rejection{ID: protocol.ProposalID{Session: membertest.Session, Seq: 1}, Reason: protocol.ReasonOverloaded})
	}
	c.then(refuse)
	in.Propose(0, membertest.Sealed(1, "refused"), &out)
	c.then(func(*protocol.Effects) {})
	c.then(refuse)
	in.Step(time.Second, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 2, "refused ones are tried again")
	in.Step(11*time.Second, protocol.Tick{}, &out)
	require.ErrorIs(t, out.Failed[0].Err, member.ErrOverloaded, "nothing happened")
}

func TestASnapshotPutsCommitsInDoubt(t *testing.T) {
	c, in := newScripted(2)
	var out Outbox
	in.Propose(0, membertest.Sealed(1, "a"), &out)
	c.then(func(e *protocol.Effects) {
		e.Commit = append(e.Commit,
			protocol.Entry{Kind: protocol.EntryBatch, ID: protocol.ProposalID{Session: membertest.Session, Seq: 1}})
	})
	in.Step(0, &protocol.Message{}, &out)
	c.then(func(e *protocol.Effects) { e.Install = &protocol.Base{Index: 9, Term: 1} })
	in.Step(0, protocol.SnapshotReceived{}, &out)
	require.Empty(t, out.Commit)
	require.Empty(t, out.Own)
	require.Equal(t, 1, in.Pending(), "proposed again, to learn whether it was behind the snapshot")
	in.Step(0, protocol.Tick{}, &out)
	require.Len(t, proposals(c), 2)
}

func TestRoomLetsBatchesGrow(t *testing.T) {
	_, in := newScripted(1)
	var out Outbox
	ok, _ := in.Room(0, 100, false)
	require.True(t, ok)
	in.Propose(0, membertest.Sealed(1, "x"), &out)
	ok, wait := in.Room(0, 100, false)
	require.False(t, ok)
	require.Equal(t, adaptiveInterval, wait)
	ok, _ = in.Room(0, largeBatch, false)
	require.True(t, ok, "large batches gain nothing by waiting")
	ok, _ = in.Room(0, 100, true)
	require.True(t, ok, "nor do full ones")
	ok, _ = in.Room(adaptiveInterval, 100, false)
	require.True(t, ok, "the way to the quorum is long")
}

// A leader proposes no more bytes of its own at a time than other members may forward to it.
func TestRoomIsBoundedInBytes(t *testing.T) {
	_, in := newScripted(1)
	in.cfg.ProposedBytes = 200
	var out Outbox
	ok, _ := in.Room(0, 1000, true)
	require.True(t, ok, "one of any size")
	in.Propose(0, membertest.Sealed(1, string(make([]byte, 98))), &out) // 99 bytes
	ok, _ = in.Room(0, 101, true)
	require.True(t, ok)
	ok, wait := in.Room(time.Second, 102, true)
	require.False(t, ok)
	require.Zero(t, wait, "only an answer makes room")
	in.pending[0].Answered, in.early = true, 1
	ok, _ = in.Room(0, 1000, true)
	require.True(t, ok, "no one waits for what is answered early")
}

// A member whose only route is itself, as with ISS, lets batches grow longer while its disk writes.
func TestRoomWaitsForTheDiskWhereAllPropose(t *testing.T) {
	c, in := newScripted(2)
	c.status.Routes = []protocol.Route{{To: 1}}
	in.observe()
	var out Outbox
	c.then(func(e *protocol.Effects) {
		e.Persist = append(e.Persist, protocol.Record{Kind: protocol.RecordState})
		e.Seq = 1
	})
	in.Propose(0, membertest.Sealed(1, "x"), &out)
	ok, wait := in.Room(adaptiveInterval, 100, false)
	require.False(t, ok)
	require.Equal(t, writingInterval-adaptiveInterval, wait)
	ok, _ = in.Room(writingInterval, 100, false)
	require.True(t, ok, "the disk is slow")
	ok, _ = in.Room(adaptiveInterval, largeBatch, false)
	require.True(t, ok)
	in.Step(0, protocol.Persisted{Seq: 1}, &out)
	ok, _ = in.Room(adaptiveInterval, 100, false)
	require.True(t, ok, "the disk does nothing")

	c.then(func(e *protocol.Effects) {
		e.Persist = append(e.Persist, protocol.Record{Kind: protocol.RecordState})
		e.Seq = 2
	})
	in.Propose(0, membertest.Sealed(2, "y"), &out)
	c.status.Routes = []protocol.Route{{To: 2}}
	in.observe()
	ok, _ = in.Room(adaptiveInterval, 100, false)
	require.True(t, ok, "another member takes the batches of all")
}

func TestReadsAreAskedAgain(t *testing.T) {
	c, in := newScripted(2)
	var out Outbox
	c.then(func(e *protocol.Effects) {
		e.Reject = append(e.Reject, protocol.Rejection{Context: 7, Reason: protocol.ReasonNoLeader})
	})
	in.Read(0, protocol.Read{Context: 7}, &out)
	c.then(func(*protocol.Effects) {})
	c.then(func(e *protocol.Effects) { e.Reads = append(e.Reads, protocol.ReadIndex{Context: 7, Index: 3}) })
	in.Step(time.Millisecond, protocol.Tick{}, &out)
	require.Equal(t, []protocol.ReadIndex{{Context: 7, Index: 3}}, out.Reads)
	in.Read(0, protocol.Read{Context: 8, Barrier: true}, &out)
	in.Step(11*time.Second, protocol.Tick{}, &out)
	require.Equal(t, []uint64{8}, out.FailedReads)
}

func TestASnapshotAmongOtherInputsVoidsWhatCameBeforeIt(t *testing.T) {
	c, in := newScripted(2)
	var out Outbox
	c.then(func(e *protocol.Effects) { e.Commit = append(e.Commit, protocol.Entry{Index: 8}) })
	c.then(func(e *protocol.Effects) { e.Install = &protocol.Base{Index: 9, Term: 1} })
	c.then(func(e *protocol.Effects) { e.Commit = append(e.Commit, protocol.Entry{Index: 10}) })
	in.StepAll(&member.Clock{Read: func() time.Duration { return 0 }},
		[]protocol.Input{&protocol.Message{}, protocol.SnapshotReceived{}, &protocol.Message{}}, &out)
	require.Len(t, out.Commit, 1)
	require.EqualValues(t, 10, out.Commit[0].Index)
}

// What a read asks for is repeated with it.
func TestBarriersAreRepeated(t *testing.T) {
	core, in := newScripted(2)
	var out Outbox
	in.Read(0, protocol.Read{Context: 7, Barrier: true}, &out)
	in.Step(time.Second, protocol.Tick{}, &out)
	var asked []protocol.Read
	for _, input := range core.inputs {
		if r, ok := input.(protocol.Read); ok {
			asked = append(asked, r)
		}
	}
	require.Equal(t, []protocol.Read{{Context: 7, Barrier: true}, {Context: 7, Barrier: true}}, asked)
}

// TestOwnBatchesAreFoundInGroups: a member learns that what it proposed is committed in a group, if the
// payload is at hand. If it is not, the batch stays pending.
func TestOwnBatchesAreFoundInGroups(t *testing.T) {
	c, in := newScripted(1)
	out := &Outbox{}
	own := []*intake.Batch{membertest.Sealed(1, "a"), membertest.Sealed(2, "b"), membertest.Sealed(3, "c")}
	for _, b := range own {
		in.Propose(0, b, out)
	}
	light := membertest.GroupAt(2, own[2])
	light.Payload = nil
	c.then(func(e *protocol.Effects) {
		e.Commit = []protocol.Entry{membertest.GroupAt(1, membertest.OfMember(2, 1, "x"), own[1], own[0]), light}
	})
	in.Step(time.Millisecond, protocol.Tick{}, out)
	require.Equal(t, []*intake.Batch{own[1], own[0]}, out.Own)
	require.EqualValues(t, 1, own[0].Group)
	require.Equal(t, 1, in.Pending())
}

package snapshot

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

func TestMendingAsksOneAfterTheOther(t *testing.T) {
	const election = time.Second
	st := &protocol.Status{Self: 2, Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}
	var m StateRepair
	to, _ := m.Next(0, election, st)
	require.Zero(t, to, "the state is good")
	m.Damaged(&order.Cursor{Position: 7})
	type question struct {
		to    protocol.MemberID
		again bool
	}
	var asked []question
	for now := time.Duration(0); now < 70*election; now += election / 10 {
		to, q := m.Next(now, election, st)
		if to == 0 {
			continue
		}
		require.EqualValues(t, 7, q.Position)
		asked = append(asked, question{to, q.Again})
		var err error
		if len(asked) < 4 {
			err = &member.NoStateError{}
		}
		m.Answered(now, election, q, err)
		require.NoError(t, m.Check())
	}
	// Members that refuse are left at once. A member that sends its state gets time.
	require.Equal(t, []question{{3, false}, {1, false}, {3, false}, {1, false}, {1, true}}, asked[:5])
	require.Equal(t, question{1, true}, asked[60])
	require.Equal(t, []question{{3, false}, {3, true}}, asked[63:65], "nothing came for too long")
	m.Damaged(nil)
	require.NoError(t, m.Check())

	alone := &protocol.Status{Self: 1, Config: protocol.Config{Members: []protocol.Member{{ID: 1}}}}
	m.Damaged(&order.Cursor{})
	to, _ = m.Next(0, election, alone)
	require.Zero(t, to, "there is nobody")

	joined := &protocol.Status{Self: 2, Leader: 3}
	to, _ = m.Next(0, election, joined)
	require.EqualValues(t, 3, to, "it knows no members yet")
}

// The members of this member's zone are asked first, and then the others.
func TestAStateComesFromTheZone(t *testing.T) {
	const election = time.Second
	st := &protocol.Status{Self: 2, Config: protocol.Config{Members: []protocol.Member{{ID: 1, Zone: "a"},
		{ID: 2, Zone: "b"}, {ID: 3, Zone: "a"}, {ID: 4, Zone: "b"}, {ID: 5}}}}
	var m StateRepair
	m.Damaged(&order.Cursor{Position: 7})
	for i, want := range []protocol.MemberID{4, 1, 3, 5, 4} {
		now := time.Duration(i) * 2 * election
		to, q := m.Next(now, election, st)
		require.Equal(t, want, to)
		m.Answered(now, election, q, &member.NoStateError{})
	}
}

// TestOneQuestionAtATime: the next question waits for the answer. An answer to a question about
// earlier damage says nothing.
func TestOneQuestionAtATime(t *testing.T) {
	const election = time.Second
	st := &protocol.Status{Self: 1, Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}
	var m StateRepair
	ask := func(now time.Duration) (protocol.MemberID, StateQuestion) { return m.Next(now, election, st) }
	m.Damaged(&order.Cursor{})
	first, old := ask(0)
	require.NotZero(t, first)
	to, _ := ask(5 * election)
	require.Zero(t, to, "the answer has not come")

	m.Damaged(nil)
	m.Damaged(&order.Cursor{})
	second, q := ask(6 * election)
	require.NotZero(t, second)
	require.NotEqual(t, first, second)
	m.Answered(6*election, election, old, nil)
	to, _ = ask(8 * election)
	require.Zero(t, to, "that was the answer to another question")
	m.Answered(8*election, election, q, nil)
	to, q = ask(8 * election)
	require.Equal(t, second, to)
	require.True(t, q.Again, "nothing has come")
	m.Answered(8*election, election, q, &member.NoStateError{Detail: "it sends none any more"})
	to, _ = ask(9 * election)
	require.Equal(t, first, to, "the other one, soon")

	require.True(t, m.Arrived())
	require.False(t, m.Wants(), "one that came may do")
	to, _ = ask(99 * election)
	require.Zero(t, to, "Apply looks at it")
	m.Refused(99*election, election)
	require.True(t, m.Wants())
	to, _ = ask(100 * election)
	require.Zero(t, to, "the last question is still open")
}

// fragile is a state machine whose state can be damaged.
type fragile struct {
	applied []member.Command
	damaged error
}

func (f *fragile) Apply(commands []member.Command) error {
	if f.damaged == nil {
		f.applied = append(f.applied, commands...)
	}
	return f.damaged
}
func (f *fragile) Snapshot() (member.Snapshot, error) { return nil, f.damaged }
func (f *fragile) Restore(r io.Reader) error          { f.damaged = nil; return nil }
func (f *fragile) Applied() protocol.Position         { return 0 }
func (f *fragile) Sync() error                        { return f.damaged }
func (f *fragile) Damaged() error                     { return f.damaged }
func (f *fragile) Condemn(cause error)                { f.damaged = cause }

// TestDamagedStateIsReplaced applies nothing to a damaged state. It continues after a snapshot that is
// not behind the state's place in the order. A snapshot of the same place is enough.
func TestDamagedStateIsReplaced(t *testing.T) {
	entry := func(index protocol.Index) protocol.Entry {
		e := protocol.Entry{Kind: protocol.EntryBatch,
			ID: protocol.ProposalID{Session: protocol.Session{Member: 1}, Seq: uint64(index)}, Count: 1}
		e.Payload = protocol.AppendCommand(nil, []byte{byte(index)})
		e.Seal(index, 1, make([]byte, protocol.HeadSize))
		return e
	}
	sm := &fragile{}
	meta := member.Bootstrap(order.Begin(1, false), []protocol.Member{{ID: 1}, {ID: 2}})
	a := apply.NewApplier(sm, meta, protocol.Session{}, 0, func(protocol.InstanceID, *protocol.Entry) error { return nil })
	apply := func(index protocol.Index) {
		require.NoError(t, a.Apply(intake.CommittedEntries{Instance: meta.Cursor.Points[0].Instance,
			Entries: []protocol.Entry{entry(index)}}))
	}
	apply(1)
	before := a.Meta()
	require.Len(t, sm.applied, 1)

	sm.Condemn(errors.New("a flipped byte"))
	apply(2) // it is in the order, but it has no effect
	require.True(t, a.Stuck())
	apply(3)
	require.Len(t, sm.applied, 1)
	require.False(t, a.Fits(&before), "entry 2 would be lost")

	good := before
	good.Cursor = a.Cursor() // from a member that applied entry 2
	require.Equal(t, protocol.Index(2), good.Cursor.Points[0].Index)
	require.True(t, a.Fits(&good))
	require.NoError(t, a.Install(good, bytes.NewReader(nil)))
	require.False(t, a.Stuck())
	require.Len(t, sm.applied, 2, "entry 3 follows")
	require.Equal(t, []byte{3}, sm.applied[1].Data)
}

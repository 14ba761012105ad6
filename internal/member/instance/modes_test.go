package instance

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

// promises is a member of a protocol that answers early, up to what its instance hands on.
type promises struct {
	*testing.T
	p       intake.Proposals
	core    *scriptedCore
	in      *Instance
	out     Outbox
	answers map[string][]any
}

func newPromises(t *testing.T) *promises {
	s := &promises{T: t, p: intake.Proposals{MaxBatch: 100, MaxBytes: 1000, Proposing: membertest.Keyed},
		answers: map[string][]any{}}
	s.p.Free = func(b *intake.Batch) { s.p.Settled(0, b) }
	s.core, s.in = newScripted(2)
	return s
}

func (s *promises) now() time.Duration { return 0 }

func (s *promises) propose(name string, o protocol.ProposeOptions) *intake.Batch {
	_, err := s.p.AddWith(s.now, []byte(name), &o, func(result any, err error) {
		s.answers[name] = append(s.answers[name], result, err)
	})
	require.NoError(s, err)
	b := s.p.Take()
	s.in.Propose(0, b, &s.out)
	return b
}

// step steps the core, which wants what f says.
func (s *promises) step(now time.Duration, in protocol.Input, f func(*protocol.Effects)) {
	s.core.then(f)
	s.in.Step(now, in, &s.out)
	for _, b := range s.out.Accepted {
		b.Accept(0)
	}
	for _, f := range s.out.Failed {
		f.Batch.Fail(f.Err)
	}
	require.NoError(s, s.p.Check())
}

func (s *promises) reset() { s.out.Reset() }

// What was answered as accepted is neither given up nor failed by a member that refuses it, and Low does
// not pass it before it is applied.
func TestAcceptedCommandsAreNotGivenUp(t *testing.T) {
	s := newPromises(t)
	a := s.propose("a", membertest.EarlyAnswer)
	s.step(1, protocol.Tick{}, func(e *protocol.Effects) { e.Accepted = []protocol.ProposalID{a.Entry.ID, {Seq: 77}} })
	require.Equal(t, []any{&intake.Accepted{Token: a.Entry.ID}, error(nil)}, s.answers["a"])
	s.reset()
	s.step(2, protocol.Tick{}, func(e *protocol.Effects) { e.Accepted = []protocol.ProposalID{a.Entry.ID} })
	require.Empty(t, s.out.Accepted, "answered once")

	b := s.propose("b", protocol.ProposeOptions{})
	s.step(3, protocol.Tick{}, func(e *protocol.Effects) {
		e.Reject = []protocol.Rejection{{ID: a.Entry.ID, Reason: protocol.ReasonMalformed},
			{ID: b.Entry.ID, Reason: protocol.ReasonMalformed}}
	})
	require.Error(t, s.answers["b"][1].(error))
	s.reset()
	s.step(time.Hour, protocol.Tick{}, func(*protocol.Effects) {})
	require.Equal(t, 1, s.in.Pending(), "it is tried on for ever")
	require.Len(t, s.answers["a"], 2)
	c := s.propose("c", protocol.ProposeOptions{})
	require.Equal(t, a.Entry.ID.Seq, c.Entry.Low)

	s.step(time.Hour, protocol.Wake{}, func(e *protocol.Effects) { e.Commit = []protocol.Entry{a.Entry} })
	require.Equal(t, []*intake.Batch{a}, s.out.Own)
	a.Settle(0, make([]member.Command, 1))
	require.Len(t, s.answers["a"], 2, "nobody is told again")
	d := s.propose("d", protocol.ProposeOptions{})
	require.Equal(t, c.Entry.ID.Seq, d.Entry.Low)
}

// However long the cluster is without a leader: what is accepted waits for it, and what comes next can be
// accepted meanwhile.
func TestAcceptedCommandsLeaveRoom(t *testing.T) {
	s := newPromises(t)
	s.p.MaxBytes = 1 << 20
	for range 2 * adaptiveMax {
		ok, _ := s.in.Room(0, 1, true)
		require.True(t, ok, "%d batches are accepted", s.in.Pending())
		b := s.propose("a", membertest.EarlyAnswer)
		s.step(1, protocol.Tick{}, func(e *protocol.Effects) { e.Accepted = []protocol.ProposalID{b.Entry.ID} })
		s.reset()
	}
	for range adaptiveMax {
		s.propose("b", membertest.EarlyAnswer)
	}
	ok, _ := s.in.Room(0, 1, true)
	require.False(t, ok, "those that nobody accepted count")
}

// The answer comes before whatever the same turn of the core says about the batch.
func TestAcceptedAndCommittedAtOnce(t *testing.T) {
	s := newPromises(t)
	a := s.propose("a", membertest.EarlyAnswer)
	s.step(1, protocol.Tick{}, func(e *protocol.Effects) {
		e.Accepted, e.Commit = []protocol.ProposalID{a.Entry.ID}, []protocol.Entry{a.Entry}
	})
	require.Equal(t, []*intake.Batch{a}, s.out.Own)
	a.Settle(0, make([]member.Command, 1))
	require.Equal(t, []any{&intake.Accepted{Token: a.Entry.ID}, error(nil)}, s.answers["a"])
	require.Zero(t, s.p.Bytes())
}

// A batch whose instance was retired waits to be taken again. If it was answered it waits forever.
func TestAnsweredBatchesDoNotExpire(t *testing.T) {
	s := newPromises(t)
	a := s.propose("a", membertest.EarlyAnswer)
	b := s.propose("b", membertest.EarlyAnswer)
	s.step(1, protocol.Tick{}, func(e *protocol.Effects) { e.Accepted = []protocol.ProposalID{a.Entry.ID} })
	require.NoError(t, s.p.Again(s.in.Retire()))
	require.Equal(t, []*intake.Batch{b}, s.p.Expired(time.Hour, time.Minute))
	require.Equal(t, a, s.p.Take())
}

// A protocol without such answers answers when the command is applied. Its commands share batches.
func TestWithoutEarlyAnswers(t *testing.T) {
	s := newPromises(t)
	s.p.Proposing = protocol.Proposing{}
	for _, o := range []protocol.ProposeOptions{{}, membertest.EarlyAnswer, {Keys: []uint64{1}}} {
		_, err := s.p.AddWith(s.now, []byte("x"), &o, func(any, error) {})
		require.NoError(t, err)
	}
	b := s.p.Take()
	require.EqualValues(t, 3, b.Entry.Count)
	require.Nil(t, b.Options)
	s.in.Propose(0, b, &s.out)
	s.step(1, protocol.Tick{}, func(e *protocol.Effects) { e.Accepted = []protocol.ProposalID{b.Entry.ID} })
	require.Empty(t, s.out.Accepted)
	var wrong *protocol.OptionsError
	_, err := s.p.AddWith(s.now, []byte("x"), &protocol.ProposeOptions{Mode: 9}, nil)
	require.ErrorAs(t, err, &wrong)
	err = s.p.SetOptions(intake.NewBodyBatch(nil, []byte("x"), nil),
		&protocol.ProposeOptions{Keys: make([]uint64, protocol.MaxKeys+1)})
	require.ErrorAs(t, err, &wrong)
}

// Commands of different paths and modes have batches of their own, which grow side by side. A client's
// commands keep their order.
func TestBatchesByPath(t *testing.T) {
	key := func(k uint64) protocol.ProposeOptions { return protocol.ProposeOptions{Keys: []uint64{k}} }
	sequence := []protocol.ProposeOptions{{}, key(1), {}, key(3), membertest.EarlyAnswer, key(2), {}}
	s := newPromises(t)
	for _, o := range sequence {
		_, err := s.p.AddWith(s.now, []byte("x"), &o, func(any, error) {})
		require.NoError(t, err)
	}
	type batch struct {
		count uint32
		path  protocol.Path
		mode  protocol.Mode
		keys  []uint64
	}
	var got []batch
	for b := s.p.Take(); b != nil; b = s.p.Take() {
		o := protocol.ProposeOptions{}
		if b.Options != nil {
			o = *b.Options
		}
		got = append(got, batch{b.Entry.Count, b.Path, o.Mode, o.Keys})
		b.Fail(member.ErrStopped)
	}
	require.ElementsMatch(t, []batch{
		{3, 0, protocol.ModeConfirmed, nil}, {2, 1, protocol.ModeConfirmed, []uint64{1, 3}},
		{1, 0, protocol.ModeAccepted, nil}, {1, 0, protocol.ModeConfirmed, []uint64{2}},
	}, got)
	require.Zero(t, s.p.Bytes())

	q := intake.ClientQueue{Proposals: &s.p}
	q.Free = func(b *intake.Batch) { _, _, _ = q.Settled(s.now, b) }
	for _, o := range sequence {
		_, err := q.AddWith(s.now, []byte("x"), &o, func(any, error) {})
		require.NoError(t, err)
	}
	var counts []int
	for b := s.p.Take(); b != nil; b = s.p.Take() {
		counts = append(counts, len(b.Done))
		b.Settle(0, make([]member.Command, len(b.Done)))
	}
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1}, counts)
	require.Zero(t, s.p.Bytes())
}

// A batch goes where its path goes: it is proposed again when that changes, and waits if the member there
// has not settled others.
func TestBatchesFollowTheirPath(t *testing.T) {
	s := newPromises(t)
	routes := func(term protocol.Term, to ...protocol.MemberID) {
		s.core.status.Routes = nil
		for _, m := range to {
			s.core.status.Routes = append(s.core.status.Routes, protocol.Route{To: m, Term: term})
		}
		s.core.inputs = nil
		s.step(1, protocol.Wake{}, func(e *protocol.Effects) { e.Changed = true })
	}
	odd, even := protocol.ProposeOptions{Keys: []uint64{1}}, protocol.ProposeOptions{Keys: []uint64{2}}
	proposed := func() (out [][]uint64) {
		out = proposals(s.core)
		s.core.inputs = nil
		return out
	}
	routes(1, 1, 0)
	here := s.propose("here", even)
	waits := s.propose("waits", odd)
	require.Equal(t, [][]uint64{{here.Entry.ID.Seq}}, proposed(), "nobody takes the other path")
	routes(1, 1, 3)
	require.Equal(t, [][]uint64{{waits.Entry.ID.Seq}}, proposed())
	routes(2, 1, 3)
	require.Equal(t, [][]uint64{{here.Entry.ID.Seq, waits.Entry.ID.Seq}}, proposed())

	s.in.cfg.ProposedBytes = 1
	more := s.propose("more", odd)
	require.Empty(t, proposed(), "member 3 has enough")
	require.Equal(t, protocol.ReasonOverloaded, more.Reason)
	other := s.propose("other", even)
	require.Equal(t, [][]uint64{{other.Entry.ID.Seq}}, proposed())
	s.step(1, protocol.Wake{}, func(e *protocol.Effects) { e.Commit = []protocol.Entry{waits.Entry} })
	require.Equal(t, [][]uint64{{more.Entry.ID.Seq}}, proposed())
	require.True(t, errors.Is(more.Abandoned(), member.ErrMaybeCommitted))
}

// What a batch asks for reaches the core next to its entry.
func TestOptionsReachTheCore(t *testing.T) {
	s := newPromises(t)
	s.propose("plain", protocol.ProposeOptions{})
	s.propose("early", membertest.EarlyAnswer)
	var got []protocol.Propose
	for _, in := range s.core.inputs {
		if p, ok := in.(protocol.Propose); ok {
			got = append(got, p)
		}
	}
	require.Len(t, got, 2)
	require.Nil(t, got[0].Options)
	require.Equal(t, protocol.ModeConfirmed, got[0].OptionsOf(0).Mode)
	require.Equal(t, protocol.ModeAccepted, got[1].OptionsOf(0).Mode)
}

// Blind says which path a command takes. Where there is one path it says nothing, and commands share
// batches. A command whose result is of no interest is blind.
func TestBlindCommandsTakeAPath(t *testing.T) {
	lanes := protocol.Proposing{Accepted: true, Path: func(o *protocol.ProposeOptions) protocol.Path {
		if o.Blind {
			return 1
		}
		return 0
	}}
	for _, c := range []struct {
		proposing protocol.Proposing
		o         protocol.ProposeOptions
		blind     bool
		path      protocol.Path
	}{
		{lanes, protocol.ProposeOptions{}, false, 0},
		{lanes, protocol.ProposeOptions{Blind: true}, true, 1},
		{lanes, membertest.EarlyAnswer, true, 1},
		{protocol.Proposing{Accepted: true}, protocol.ProposeOptions{Blind: true}, false, 0},
		{protocol.Proposing{Path: lanes.Path}, membertest.EarlyAnswer, true, 1},
	} {
		p := intake.Proposals{MaxBatch: 100, MaxBytes: 1000, Proposing: c.proposing}
		require.NoError(t, c.o.Validate())
		_, err := p.AddWith(func() time.Duration { return 0 }, []byte("x"), &c.o, func(any, error) {})
		require.NoError(t, err)
		b := p.Take()
		require.Equal(t, c.path, b.Path)
		require.Equal(t, c.blind, b.Options != nil && b.Options.Blind)
	}
}

// TestProposalsFollowAnotherCore: what waits keeps what the next core uses of its options, in whatever queue it waits.
// A command that was given to the core before comes again in front, likewise.
func TestProposalsFollowAnotherCore(t *testing.T) {
	p := intake.Proposals{MaxBatch: 100, MaxBytes: 1000, Proposing: membertest.Keyed}
	p.Free = func(b *intake.Batch) { p.Settled(0, b) }
	q := intake.ClientQueue{Proposals: &p}
	q.Free = func(b *intake.Batch) { _, _, _ = q.Settled(now0, b) }
	early := protocol.ProposeOptions{Mode: protocol.ModeAccepted, Keys: []uint64{1}}
	done := func(any, error) {}
	add := func(to interface {
		AddWith(func() time.Duration, []byte, *protocol.ProposeOptions, intake.Done) (bool, error)
	}, o protocol.ProposeOptions) {
		_, err := to.AddWith(now0, []byte("x"), &o, done)
		require.NoError(t, err)
	}
	add(&q, early)
	taken := p.Take()
	require.EqualValues(t, 1, taken.Path)
	require.Equal(t, protocol.ModeAccepted, taken.Mode())
	add(&q, early) // waits for the one before
	add(&p, early)
	add(&p, protocol.ProposeOptions{Keys: []uint64{2}})
	_, err := p.Add(now0, []byte("x"), done)
	require.NoError(t, err)

	p.Follow(protocol.Proposing{Keys: true})
	add(&p, early)
	require.NoError(t, p.Again([]*intake.Batch{taken}))
	for i, keys := range [][]uint64{{1}, {1}, {2}, nil, {1}} {
		b := p.Take()
		require.Zero(t, b.Path, i)
		require.Equal(t, protocol.ModeConfirmed, b.Mode(), i)
		require.Equal(t, keys != nil, b.Options != nil, i)
		if keys != nil {
			require.Equal(t, protocol.ProposeOptions{Keys: keys}, *b.Options, i)
		}
		b.Settle(0, make([]member.Command, len(b.Done)))
	}
	b := p.Take() // of the client
	require.Equal(t, protocol.ProposeOptions{Keys: []uint64{1}}, *b.Options)
	b.Settle(0, make([]member.Command, 1))
	require.Nil(t, p.Take())
	require.Zero(t, p.Bytes())
	require.NoError(t, p.Check())
}

func now0() time.Duration { return 0 }

package paxos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// thirds are every third slot, from 2 on.
type thirds struct{}

func (thirds) After(i protocol.Index) protocol.Index { return i + 3 - (i+1)%3 }

// TestASegmentOfEveryThirdSlot: an acceptor and a proposer of a segment pass over the slots of others.
func TestASegmentOfEveryThirdSlot(t *testing.T) {
	seg := Segment{Share: thirds{}, First: 2, Last: 299}
	for i, want := range map[protocol.Index]protocol.Index{0: 2, 4: 5, 5: 8, 6: 8, 7: 8, 8: 11, seg.Last: Beyond} {
		require.Equal(t, want, seg.After(i), i)
	}

	entry := func(i protocol.Index, b Ballot) *protocol.Entry {
		e := Noop()
		e.Seal(i, protocol.Term(b), make([]byte, protocol.HeadSize))
		return &e
	}
	a := NewAcceptor(seg, 3)
	a.Promise(256, 3)
	a.Accept(entry(8, 256), 3)
	require.EqualValues(t, 3, a.Reach, "there is a gap at 5")
	a.Accept(entry(5, 256), 3)
	require.EqualValues(t, 8, a.Reach)
	require.NoError(t, a.Check(3))
	a.Promise(512, 3)
	require.EqualValues(t, 3, a.Reach, "what was accepted under an older ballot does not count")
	a.Extend(6)
	require.EqualValues(t, 6, a.Reach)
	require.NoError(t, a.Check(6))

	p := Proposer{Seg: seg}
	p.Begin(512, 3)
	p.AddVote(Vote{256, *entry(8, 256)}, false)
	p.AddVote(Vote{128, *entry(8, 128)}, false)
	p.BecomeReady()
	slot, _, bound, found := p.NextSlot()
	require.EqualValues(t, 5, slot)
	require.True(t, bound && !found, "a no-op goes where nobody accepted anything, because something was accepted later")
	p.MarkProposed()
	slot, v, bound, found := p.NextSlot()
	require.EqualValues(t, 8, slot)
	require.True(t, bound && found)
	require.EqualValues(t, 256, v.Ballot)
	p.MarkProposed()
	slot, _, bound, _ = p.NextSlot()
	require.EqualValues(t, 11, slot)
	require.False(t, bound)
	require.NoError(t, p.Check(3))
}

// TestTheLowestFaultIsReported: which one is reported does not depend on the order of a map.
func TestTheLowestFaultIsReported(t *testing.T) {
	a := NewAcceptor(All, 0)
	a.Promise(256, 0)
	for i := range protocol.Index(20) {
		a.Votes[i+3] = Vote{Ballot: 512}
	}
	for range 20 {
		require.ErrorContains(t, a.Check(0), "slot 3:")
	}
}

package multipaxos

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
	seg := segment{share: thirds{}, first: 2, last: 299}
	for i, want := range map[protocol.Index]protocol.Index{0: 2, 4: 5, 5: 8, 6: 8, 7: 8, 8: 11, seg.last: beyond} {
		require.Equal(t, want, seg.after(i), i)
	}

	entry := func(i protocol.Index, b Ballot) *protocol.Entry {
		e := noop()
		e.Seal(i, protocol.Term(b), make([]byte, protocol.HeadSize))
		return &e
	}
	a := newAcceptor(seg, 3)
	a.promise(256, 3)
	a.accept(entry(8, 256), 3)
	require.EqualValues(t, 3, a.reach, "there is a gap at 5")
	a.accept(entry(5, 256), 3)
	require.EqualValues(t, 8, a.reach)
	require.NoError(t, a.check(3))
	a.promise(512, 3)
	require.EqualValues(t, 3, a.reach, "what was accepted under an older ballot does not count")
	a.extend(6)
	require.EqualValues(t, 6, a.reach)
	require.NoError(t, a.check(6))

	p := proposer{seg: seg}
	p.begin(512, 3)
	p.note(vote{256, *entry(8, 256)}, false)
	p.note(vote{128, *entry(8, 128)}, false)
	p.settle()
	slot, _, bound, found := p.next()
	require.EqualValues(t, 5, slot)
	require.True(t, bound && !found, "a no-op goes where nobody accepted anything, because something was accepted later")
	p.proposed()
	slot, v, bound, found := p.next()
	require.EqualValues(t, 8, slot)
	require.True(t, bound && found)
	require.EqualValues(t, 256, v.ballot)
	p.proposed()
	slot, _, bound, _ = p.next()
	require.EqualValues(t, 11, slot)
	require.False(t, bound)
	require.NoError(t, p.check(3))
}

// TestTheLowestFaultIsReported: which one is reported does not depend on the order of a map.
func TestTheLowestFaultIsReported(t *testing.T) {
	a := newAcceptor(all, 0)
	a.promise(256, 0)
	for i := range protocol.Index(20) {
		a.votes[i+3] = vote{ballot: 512}
	}
	for range 20 {
		require.ErrorContains(t, a.check(0), "slot 3:")
	}
}

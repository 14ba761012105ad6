package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// TestAReadGroupThatFailedIsNotAnswered: an answer to it may still be in progress.
func TestAReadGroupThatFailedIsNotAnswered(t *testing.T) {
	r := &Replica{}
	r.loops.Store(&eventLoops{all: []*eventLoop{{r: r, id: 1, wake: make(chan struct{}, 1)},
		{r: r, id: 2, wake: make(chan struct{}, 1)}}})
	meta := member.Meta{Cursor: order.Begin(1, false)}
	meta.Cursor.Points[0].Index = 9
	l := &applyLoop{r: r, known: apply.NewApplied(apply.NewApplier(nil, meta, protocol.Session{}, 0, nil))}
	g, w := newReadGroup(r.first(), false), newWaiter()
	g.add(w)
	l.ask(&g.ReadGroup, 0, []protocol.InstanceID{1}, 0)
	l.failRead(&g.ReadGroup, member.ErrReadTimeout)
	l.addReadIndex(&g.ReadGroup, 1, 5)
	l.failRead(&g.ReadGroup, member.ErrStopped)
	<-w.woken
	require.ErrorIs(t, w.result.(failure).err, member.ErrReadTimeout)
	require.Empty(t, w.woken)
}

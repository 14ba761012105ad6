package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestAReadGroupThatFailedIsNotAnswered: an answer to it may still be on its way.
func TestAReadGroupThatFailedIsNotAnswered(t *testing.T) {
	r := &Replica{}
	r.loops.Store(newLoops([]*loop{{r: r, id: 1, wake: make(chan struct{}, 1)}, {r: r, id: 2, wake: make(chan struct{}, 1)}}))
	l := &applyLoop{r: r, shape: []protocol.InstanceID{1}, added: []protocol.Index{9}}
	g := &readGroup{done: make(chan struct{})}
	l.ask(g, l.shape)
	l.failRead(g, ErrReadTimeout)
	l.readPoint(g, 1, 5)
	l.failRead(g, ErrStopped)
	<-g.done
	require.ErrorIs(t, g.err, ErrReadTimeout)
}

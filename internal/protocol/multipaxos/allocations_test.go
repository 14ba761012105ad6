package multipaxos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// A message and its part are one piece of memory, on both sides.
func TestOneAllocationAMessage(t *testing.T) {
	s, out := &Paxos{}, &protocol.Effects{Send: make([]*protocol.Message, 0, 1)}
	s.out = out
	require.EqualValues(t, 1, testsize.Allocations(t, 100, func() {
		out.Send = out.Send[:0]
		s.send(2, MsgAccepted, Part{Ballot: 7, Slot: 9})
	}))
	b := out.Send[0].AppendHead(nil)
	var m *protocol.Message
	require.EqualValues(t, 1, testsize.Allocations(t, 100, func() { m, _ = protocol.DecodeMessage(b, Codec) }))
	require.Equal(t, out.Send[0].Part, m.Part)
	require.Zero(t, testsize.Allocations(t, 100, func() { b = m.AppendHead(b[:0]) }))
}

package iss

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
)

// A message and its part are one piece of memory when it comes. The rest is the lists in a part.
func TestAllocationsOfAMessage(t *testing.T) {
	b := (&protocol.Message{Type: MsgAccepted, Instance: 1, From: 1, To: 2, Part: &Part{Slot: 9}}).AppendHead(nil)
	var m *protocol.Message
	require.EqualValues(t, 1, testsize.Allocations(t, 100, func() { m, _ = protocol.DecodeMessage(b, Codec) }))
	require.Zero(t, testsize.Allocations(t, 100, func() { b = m.AppendHead(b[:0]) }))
}

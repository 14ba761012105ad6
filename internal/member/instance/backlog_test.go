package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

// TestASlowStateMachineHoldsUpReplication: what waits to be applied has a bound in envelopes too.
// Beyond it a follower takes no entries and a leader takes no batches. The leader still takes what
// moves the cluster on.
func TestASlowStateMachineHoldsUpReplication(t *testing.T) {
	c := &scriptedCore{status: protocol.Status{Self: 1, Leader: 1, Term: 1, First: 1}}
	in := NewInstance(InstanceConfig{Self: 1, Instance: 1, Session: membertest.Session, RetryAfter: time.Second,
		GiveUp: time.Minute, Backlog: 2, Codec: membertest.Codec}, c)
	var out Outbox
	commit := func(kind protocol.EntryKind, index protocol.Index) {
		c.then(func(e *protocol.Effects) { e.Commit = []protocol.Entry{{Kind: kind, Index: index}} })
		in.Step(0, protocol.Tick{}, &out)
	}
	takes := func(m *protocol.Message) bool {
		before := len(c.inputs)
		in.Step(0, m, &out)
		return len(c.inputs) > before
	}
	entries := &protocol.Message{Type: membertest.MsgLog, Entries: []protocol.Entry{{Kind: protocol.EntryBatch}}}
	batch := &protocol.Message{Type: membertest.MsgProposals, Entries: []protocol.Entry{{Kind: protocol.EntryBatch}}}
	config := &protocol.Message{Type: membertest.MsgProposals, Entries: []protocol.Entry{{Kind: protocol.EntryConfig}}}
	room := func() bool { ok, _ := in.Room(0, 1, false); return ok }

	commit(protocol.EntryBatch, 1)
	commit(protocol.EntryBatch, 2)
	commit(protocol.EntryNoop, 9)
	require.True(t, takes(entries) && takes(batch) && room(), "what has nothing to apply does not count")

	commit(protocol.EntryEmpty, 10)
	require.False(t, takes(entries), "entries")
	require.False(t, takes(batch), "batches of others")
	require.False(t, room(), "batches of its own")
	require.True(t, takes(config), "memberships")
	require.True(t, takes(&protocol.Message{Type: membertest.MsgLog}), "what brings nothing")
	require.EqualValues(t, 2, in.HeldUp())

	in.Applied(10, 2) // the rest waits for other instances
	require.True(t, takes(entries))
	require.False(t, takes(batch))
	in.Applied(10, 10)
	require.True(t, takes(entries) && takes(batch) && room())
}

package raft_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// malformed are proposals whose digests fit and that no member could apply.
func malformed() map[string]protocol.Entry {
	batch := func(change func(*protocol.Entry)) protocol.Entry {
		e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Payload: protocol.AppendCommand(nil, []byte("command")),
			ID: protocol.ProposalID{Session: protocol.Session{Member: 2, Incarnation: 1}, Seq: 5}, Low: 5}
		change(&e)
		e.SealPayload()
		e.Seal(0, 0, make([]byte, protocol.HeadSize))
		return e
	}
	return map[string]protocol.Entry{
		"a command too few":    batch(func(e *protocol.Entry) { e.Count = 2 }),
		"a byte too many":      batch(func(e *protocol.Entry) { e.Payload = append(e.Payload, 0) }),
		"a byte too few":       batch(func(e *protocol.Entry) { e.Payload = e.Payload[:len(e.Payload)-1] }),
		"no commands":          batch(func(e *protocol.Entry) { e.Count = 0 }),
		"billions of commands": batch(func(e *protocol.Entry) { e.Count = 1 << 31 }),
		"a length without end": batch(func(e *protocol.Entry) { e.Payload = []byte{0xff, 0xff} }),
		"a body of two commands": batch(func(e *protocol.Entry) {
			e.Payload = append(e.Payload, e.Payload...)
			e.Count, e.Body = 2, []byte("body")
		}),
		"numbers that are no session":  batch(func(e *protocol.Entry) { e.Low = 6 }),
		"numbers past the last one":    batch(func(e *protocol.Entry) { e.ID.Seq = ^uint64(0); e.Low = e.ID.Seq }),
		"no instances":                 protocol.NewReshape(0),
		"too many instances":           protocol.NewReshape(protocol.MaxInstances + 1),
		"a lane that nobody asked for": protocol.NewLane(protocol.Session{Member: 2, Incarnation: 1}),
		"a generation":                 protocol.NewGeneration(3),
		"an empty value":               protocol.NewEmpty(2),
	}
}

// TestMalformedProposalsAreRefused: in the log they would stop every member, or have to be skipped
// by each.
func TestMalformedProposalsAreRefused(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}}}
	r, err := raft.New(protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second, ElectionTimeout: 10 * time.Second},
		protocol.Recovered{Base: protocol.Base{Config: config}})
	require.NoError(t, err)
	var out protocol.Effects
	step := func(in protocol.Input) {
		out.Reset()
		r.Step(time.Minute, in, &out)
		r.Step(time.Minute, protocol.Persisted{Seq: out.Seq}, &out)
	}
	for range 3 {
		step(protocol.Tick{})
	}
	require.Equal(t, protocol.Leader, r.Status().Role)
	last := r.Status().Last
	for name, e := range malformed() {
		step(protocol.Propose{Entries: []protocol.Entry{e}})
		require.Equal(t, last, r.Status().Last, "%s, proposed here", name)
		if e.Kind == protocol.EntryBatch {
			require.Equal(t, []protocol.Rejection{{ID: e.ID, Reason: protocol.ReasonMalformed, Leader: 1}}, out.Reject, name)
		}
		step(raft.NewMessage(protocol.Message{Type: message.Propose, Instance: 1, From: 2, To: 1,
			Entries: []protocol.Entry{e}}, message.Part{}))
		require.Equal(t, last, r.Status().Last, "%s, forwarded", name)
		if e.Kind == protocol.EntryBatch {
			require.Len(t, out.Send, 1, name)
			require.Equal(t, protocol.ReasonMalformed, out.Send[0].Part.(*message.Part).Reason, name)
		}
	}
}

package raft_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// TestTheOwnersWordIsOnlyAboutWhatItWasGiven: the owner of a member that starts has looked at
// nothing but its snapshot when it first says which bodies are there. What the log says of
// entries after that counts until the owner was given them and has spoken again.
func TestTheOwnersWordIsOnlyAboutWhatItWasGiven(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2, Slot: 1}, {ID: 3, Slot: 2}}}
	entry := func(i protocol.Index, form protocol.Form) protocol.Entry {
		return protocol.Entry{Index: i, Term: 1, Kind: protocol.EntryBatch, Count: 1, K: 2, BodySize: 100, Form: form}
	}
	r, err := raft.New(protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second, ElectionTimeout: 10 * time.Second,
		Placement: protocol.PlacementCode},
		protocol.Recovered{
			Base:    protocol.Base{Config: config},
			State:   protocol.HardState{Term: 1, Commit: 2},
			Entries: []protocol.Entry{entry(1, protocol.FormNone), entry(2, protocol.RowForm(0)), entry(3, protocol.RowForm(0))},
		})
	require.NoError(t, err)
	var out protocol.Effects
	says := func(in protocol.Bodies) *message.Part {
		r.Step(time.Minute, in, &out)
		out.Reset()
		r.Step(time.Minute, raft.NewMessage(protocol.Message{Type: message.Heartbeat, Instance: 1, From: 2, To: 1, Term: 1},
			message.Part{}), &out)
		require.Len(t, out.Send, 1)
		require.NoError(t, r.Check())
		return out.Send[0].Part.(*message.Part)
	}
	first := says(protocol.Bodies{})
	require.True(t, first.Lacking, "the log has an entry without its body")
	require.EqualValues(t, 2, first.Partial, "and one with a row")
	then := says(protocol.Bodies{Partial: 1})
	require.False(t, then.Lacking, "the owner was given them")
	require.EqualValues(t, 2, then.Partial, "but not the last one")

	// Another leader's log is without the last one.
	noop := protocol.Entry{Index: 3, Term: 2, Kind: protocol.EntryNoop}
	noop.Seal(3, 2, make([]byte, protocol.HeadSize))
	out.Reset()
	r.Step(time.Minute,
		raft.NewMessage(protocol.Message{Type: message.Append, Instance: 1, From: 3, To: 1, Term: 2, Context: 1,
			Entries: []protocol.Entry{noop}}, message.Part{Index: 2, LogTerm: 1}), &out)
	r.Step(time.Minute, protocol.Persisted{Seq: out.Seq}, &out)
	require.EqualValues(t, 2, r.Status().Term)
	last := out.Release[len(out.Release)-1]
	require.Equal(t, message.AppendResp, last.Type)
	require.EqualValues(t, 1, last.Part.(*message.Part).Partial)
}

package raft_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/protocol"
)

// TestWhatNoFrameTakesIsRefused: once it is in the log it would be sent forever.
func TestWhatNoFrameTakesIsRefused(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}}}
	r, err := raft.New(protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second, ElectionTimeout: 10 * time.Second,
		MaxUncommittedBytes: 1 << 30},
		protocol.Recovered{Base: protocol.Base{Config: config}})
	require.NoError(t, err)
	var out protocol.Effects
	step := func(in protocol.Input) protocol.Reason {
		out.Reset()
		r.Step(time.Minute, in, &out)
		r.Step(time.Minute, protocol.Persisted{Seq: out.Seq}, &out)
		if len(out.Reject) == 0 {
			return protocol.ReasonNone
		}
		return out.Reject[0].Reason
	}
	for range 3 {
		step(protocol.Tick{})
	}
	require.Equal(t, protocol.Leader, r.Status().Role)

	large := protocol.Entry{Kind: protocol.EntryBatch, ID: protocol.ProposalID{Seq: 1}, Count: 1,
		Size: protocol.MaxEntryBytes - protocol.HeadSize + 1}
	require.Equal(t, protocol.ReasonTooLarge, step(protocol.Propose{Entries: []protocol.Entry{large}}))

	add := func(name string) protocol.Reason {
		return step(protocol.ProposeChange{Context: 1, Changes: []protocol.Change{
			{Kind: protocol.AddLearner, Member: protocol.Member{ID: 2, Name: name}}}})
	}
	require.Equal(t, protocol.ReasonTooLarge, add(strings.Repeat("n", protocol.MaxConfigBytes)))
	require.Equal(t, protocol.ReasonNone, add("n"))
}

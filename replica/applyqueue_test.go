package replica

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// TestWhatWaitsToBeAppliedHoldsNoFrames: a payload that waits does not keep the frame in memory in
// which it came, with bodies and other entries.
func TestWhatWaitsToBeAppliedHoldsNoFrames(t *testing.T) {
	l := &applyLoop{wake: make(chan struct{}, 1)}
	push := func(e protocol.Entry) *protocol.Entry {
		l.push(applyItem{commit: member.Commitment{Instance: 1, Entries: []protocol.Entry{e}}})
		return &l.queue[len(l.queue)-1].commit.Entries[0]
	}
	frame := []byte("....small command....")
	e := push(protocol.Entry{Kind: protocol.EntryBatch, Payload: frame[4:17], Body: bytes.Repeat([]byte("x"), 100), BodySize: 100})
	require.Equal(t, "small command", string(e.Payload))
	require.Nil(t, e.Body)
	clear(frame)
	require.Equal(t, "small command", string(e.Payload), "it is a copy")

	l.bytes = applyQueueBytes + 1
	require.Nil(t, push(protocol.Entry{Kind: protocol.EntryBatch, Payload: []byte("later")}).Payload, "it is read again")
	require.NotNil(t, push(protocol.Entry{Kind: protocol.EntryConfig, Payload: []byte("now")}).Payload)
	require.EqualValues(t, applyQueueBytes+1+len("now"), l.bytes)
}

package raft_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// full has all that a message of a type may say.
func full(t protocol.MessageType) message.Part {
	switch t {
	case message.PreVote, message.Vote:
		return message.Part{Force: true, Index: math.MaxUint64, LogTerm: math.MaxUint64}
	case message.Append:
		return message.Part{Index: 1 << 40, LogTerm: 3, Round: 1}
	case message.AppendResp:
		return message.Part{Index: 5, Hint: 4, HintTerm: math.MaxUint64, Round: 300, Lacking: true, Partial: 7,
			Restripes: math.MaxUint32}
	case message.Heartbeat:
		return message.Part{Index: 128, Round: 127}
	case message.HeartbeatResp:
		return message.Part{Index: 5, Hint: 4, Round: 300, Lacking: true, Partial: math.MaxUint8, Restripes: 1}
	case message.ProposeResp:
		return message.Part{Reason: protocol.ReasonOverloaded,
			ID: protocol.ProposalID{Session: protocol.Session{Member: math.MaxUint64, Incarnation: 1 << 63}, Seq: 9}}
	case message.ReadResp:
		return message.Part{Index: 9, Round: 1, Reason: protocol.ReasonNotLeader}
	case message.Read, message.Holdings, message.HoldingsResp, message.Bodies:
		return message.Part{Round: math.MaxUint64}
	}
	return message.Part{}
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	for typ := message.PreVote; typ <= message.Bodies; typ++ {
		require.NotEmpty(t, message.Codec.Of(typ).Name)
		for _, part := range []message.Part{{}, full(typ)} {
			m := raft.NewMessage(protocol.Message{Type: typ, Reject: true, Instance: 1, From: 2, To: 3, Term: 4, Commit: 5,
				Context: 6}, part)
			b := m.AppendHead(nil)
			require.Len(t, b, m.Size())
			got, err := protocol.DecodeMessage(b, message.Codec)
			require.NoError(t, err, message.Codec.Name(typ))
			require.Equal(t, m, got)
			require.NotPanics(t, func() { message.Codec.PartOf(got); message.Codec.ClaimsOf(got) })
		}
	}
}

// What no member sends is refused, though its checksum is right.
func TestImpossibleParts(t *testing.T) {
	for name, c := range map[string]struct {
		typ  protocol.MessageType
		part []byte
	}{
		"no part":             {message.Append, nil},
		"half a mask":         {message.Append, []byte{0}},
		"a number is missing": {message.Append, []byte{1, 0}},
		"a number is cut":     {message.Append, []byte{1, 0, 0x80}},
		"a number that is too long": {message.Append, []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0x7f}},
		"a zero":                    {message.Append, []byte{1, 0, 0}},
		"more than was announced":   {message.Append, []byte{1, 0, 1, 1}},
		"another type's field":      {message.TimeoutNow, []byte{1, 0, 1}},
		"a field that is not known": {message.Append, []byte{0, 0x80}},
		"too large a reason":        {message.ReadResp, []byte{1 << 5, 0, 0x80, 2}},
		"too large a k":             {message.AppendResp, []byte{1 << 6, 0, 0x80, 2}},
		"too large a count":         {message.AppendResp, []byte{1 << 7, 0, 0x80, 0x80, 0x80, 0x80, 0x10}},
	} {
		_, err := protocol.DecodeMessage((&protocol.Message{Type: c.typ, Part: raw(c.part)}).AppendHead(nil), message.Codec)
		require.ErrorAs(t, err, new(*protocol.CorruptError), name)
	}
}

type raw []byte

func (r raw) Append(dst []byte) []byte { return append(dst, r...) }

// A message and its part are one piece of memory, on both sides.
func TestOneAllocationAMessage(t *testing.T) {
	b := raft.NewMessage(protocol.Message{Type: message.AppendResp}, full(message.AppendResp)).AppendHead(nil)
	var m *protocol.Message
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { m, _ = protocol.DecodeMessage(b, message.Codec) }))
	require.EqualValues(t, 1,
		testing.AllocsPerRun(100, func() { m = raft.NewMessage(protocol.Message{Type: message.Append}, message.Part{}) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { b = m.AppendHead(b[:0]) }))
}

package raft_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/protocol"
)

// full has all that a message of a type may say.
func full(t protocol.MessageType) raft.Part {
	switch t {
	case raft.MsgPreVote, raft.MsgVote:
		return raft.Part{Force: true, Index: math.MaxUint64, LogTerm: math.MaxUint64}
	case raft.MsgAppend:
		return raft.Part{Index: 1 << 40, LogTerm: 3, Round: 1}
	case raft.MsgAppendResp:
		return raft.Part{Index: 5, Hint: 4, HintTerm: math.MaxUint64, Round: 300, Lacking: true, Partial: 7, Restripes: math.MaxUint32}
	case raft.MsgHeartbeat:
		return raft.Part{Index: 128, Round: 127}
	case raft.MsgHeartbeatResp:
		return raft.Part{Index: 5, Hint: 4, Round: 300, Lacking: true, Partial: math.MaxUint8, Restripes: 1}
	case raft.MsgProposeResp:
		return raft.Part{Reason: protocol.ReasonOverloaded, ID: protocol.ProposalID{Session: protocol.Session{Member: math.MaxUint64, Incarnation: 1 << 63}, Seq: 9}}
	case raft.MsgReadResp:
		return raft.Part{Index: 9, Round: 1, Reason: protocol.ReasonNotLeader}
	case raft.MsgRead, raft.MsgHoldings, raft.MsgHoldingsResp, raft.MsgBodies:
		return raft.Part{Round: math.MaxUint64}
	}
	return raft.Part{}
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	for typ := raft.MsgPreVote; typ <= raft.MsgBodies; typ++ {
		require.NotEmpty(t, raft.Codec.Of(typ).Name)
		for _, part := range []raft.Part{{}, full(typ)} {
			m := raft.NewMessage(protocol.Message{Type: typ, Reject: true, Instance: 1, From: 2, To: 3, Term: 4, Commit: 5, Context: 6}, part)
			b := m.AppendHead(nil)
			require.Len(t, b, m.Size())
			got, err := protocol.DecodeMessage(b, raft.Codec)
			require.NoError(t, err, raft.Codec.Name(typ))
			require.Equal(t, m, got)
			require.NotPanics(t, func() { raft.Codec.PartOf(got); raft.Codec.ClaimsOf(got) })
		}
	}
}

// What no member sends is refused, though its checksum is right.
func TestImpossibleParts(t *testing.T) {
	for name, c := range map[string]struct {
		typ  protocol.MessageType
		part []byte
	}{
		"no part":                   {raft.MsgAppend, nil},
		"half a mask":               {raft.MsgAppend, []byte{0}},
		"a number is missing":       {raft.MsgAppend, []byte{1, 0}},
		"a number is cut":           {raft.MsgAppend, []byte{1, 0, 0x80}},
		"a number that is too long": {raft.MsgAppend, []byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
		"a zero":                    {raft.MsgAppend, []byte{1, 0, 0}},
		"more than was announced":   {raft.MsgAppend, []byte{1, 0, 1, 1}},
		"another type's field":      {raft.MsgTimeoutNow, []byte{1, 0, 1}},
		"a field that is not known": {raft.MsgAppend, []byte{0, 0x80}},
		"too large a reason":        {raft.MsgReadResp, []byte{1 << 5, 0, 0x80, 2}},
		"too large a k":             {raft.MsgAppendResp, []byte{1 << 6, 0, 0x80, 2}},
		"too large a count":         {raft.MsgAppendResp, []byte{1 << 7, 0, 0x80, 0x80, 0x80, 0x80, 0x10}},
	} {
		_, err := protocol.DecodeMessage((&protocol.Message{Type: c.typ, Part: raw(c.part)}).AppendHead(nil), raft.Codec)
		require.ErrorAs(t, err, new(*protocol.CorruptError), name)
	}
}

type raw []byte

func (r raw) Append(dst []byte) []byte { return append(dst, r...) }

// A message and its part are one piece of memory, on both sides.
func TestOneAllocationAMessage(t *testing.T) {
	b := raft.NewMessage(protocol.Message{Type: raft.MsgAppendResp}, full(raft.MsgAppendResp)).AppendHead(nil)
	var m *protocol.Message
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { m, _ = protocol.DecodeMessage(b, raft.Codec) }))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() { m = raft.NewMessage(protocol.Message{Type: raft.MsgAppend}, raft.Part{}) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { b = m.AppendHead(b[:0]) }))
}

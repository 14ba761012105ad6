package iss

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
)

func wholeISSPart() *Part {
	return &Part{
		Segment: 300, Slot: 303, Hint: 306, Upto: 299, Ballot: 257, Round: 7, Reason: 3, More: true, Lacking: true,
		ID:  protocol.ProposalID{Session: protocol.Session{Member: 2, Incarnation: 5}, Seq: 9},
		Nil: paxos.Spans{{From: 300, To: 303}, {From: 309, To: 309}}, Never: paxos.Spans{{From: 312, To: 400}},
		Ballots: []paxos.Ballot{known, 0, 258}, Members: []protocol.MemberID{4, 1},
	}
}

// The encoding is fixed: a change breaks this test. The most frequent messages are short.
func TestISSPartsAreEncodedAsEver(t *testing.T) {
	require.Equal(t, "ff3f05ac02060c0181020702050903020103020003060"+"00c5800018302"+"0401",
		hex.EncodeToString(wholeISSPart().Append(nil)))
	accepted := Part{Segment: 1 << 30, Slot: 1<<30 + 900, Hint: 1<<30 + 900, Upto: 1<<30 + 894}
	require.Len(t, accepted.Append(nil), 14)
	require.Equal(t, []byte{0, 0, 2}, (&Part{Serving: true}).Append(nil))
}

func TestISSPartsComeBack(t *testing.T) {
	gathered := &Part{Segment: 2, Held: []relay.Held{{ID: 4, Upto: 7}, {ID: 5, Upto: 2, MissingBodies: true}}}
	low := &Part{Segment: 5, Upto: 4, Nil: paxos.Spans{{From: 5, To: 5}}}
	for _, part := range []*Part{wholeISSPart(), {}, {Hint: 1 << 60}, low, gathered} {
		kind := MsgRelay
		if len(part.Held) > 0 {
			kind = MsgGathered
		}
		b := part.Append(nil)
		m, err := decode(kind, b)
		require.NoError(t, err)
		require.Equal(t, part, m.Part)
		for cut := range b {
			_, err := decode(kind, b[:cut])
			require.Error(t, err, "%x", b[:cut])
		}
		_, err = decode(kind, append(b, 0))
		require.Error(t, err)
	}
}

// Whatever decodes encodes to the same bytes, and nothing panics.
func FuzzISSParts(f *testing.F) {
	f.Add(byte(MsgRelay), wholeISSPart().Append(nil))
	f.Add(byte(MsgGathered), (&Part{Segment: 2, Held: []relay.Held{{ID: 4, Upto: 7}}}).Append(nil))
	f.Add(byte(MsgBeat), (&Part{Slot: 9, Hint: 9, Serving: true}).Append(nil))
	f.Add(byte(MsgAccept), []byte{1, 0, 0, 0x81, 0})
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		if m, err := decode(protocol.MessageType(kind), b); err == nil {
			require.Equal(t, b, m.Part.Append(nil))
		}
	})
}

// An acknowledgement replaces an earlier one if it has as much, in the same segment, epoch and ballot.
func TestLaterAcknowledgementsReplaceEarlierOnes(t *testing.T) {
	message := func(context uint64, p Part) *protocol.Message {
		return &protocol.Message{Type: MsgAccepted, Term: 3, Context: context, Part: &p}
	}
	earlier := message(5, Part{Segment: 7, Ballot: 1, Slot: 40})
	later := message(6, Part{Segment: 7, Ballot: 1, Slot: 43})
	require.True(t, Codec.Replaces(later, earlier))
	require.True(t, Codec.Replaces(earlier, earlier))
	require.False(t, Codec.Replaces(earlier, later))
	for name, other := range map[string]*protocol.Message{
		"segment": message(6, Part{Segment: 8, Ballot: 1, Slot: 43}),
		"ballot":  message(6, Part{Segment: 7, Ballot: 2, Slot: 43}),
		"slot":    message(6, Part{Segment: 7, Ballot: 1, Slot: 39}),
		"vote":    message(0, Part{Segment: 7, Ballot: 1, Slot: 43}),
	} {
		require.False(t, Codec.Replaces(other, earlier), name)
	}
	other := *later
	other.Term++
	require.False(t, Codec.Replaces(&other, earlier), "another epoch")
	other = *later
	other.Type = MsgRefused
	require.False(t, Codec.Replaces(&other, earlier), "another type")
}

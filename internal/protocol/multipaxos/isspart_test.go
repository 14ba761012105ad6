package multipaxos

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func wholeISSPart() *ISSPart {
	return &ISSPart{
		Segment: 300, Slot: 303, Hint: 306, Upto: 299, Ballot: 257, Round: 7, Reason: 3, More: true, Lacking: true,
		ID:  protocol.ProposalID{Session: protocol.Session{Member: 2, Incarnation: 5}, Seq: 9},
		Nil: spans{{from: 300, to: 303}, {from: 309, to: 309}}, Never: spans{{from: 312, to: 400}}, Ballots: []Ballot{known, 0, 258}, Members: []protocol.MemberID{4, 1},
	}
}

// The encoding does not change unnoticed. What is said most often is short.
func TestISSPartsAreEncodedAsEver(t *testing.T) {
	require.Equal(t, "ff3f05ac02060c0181020702050903020103020003060"+"00c5800018302"+"0401", hex.EncodeToString(wholeISSPart().Append(nil)))
	accepted := ISSPart{Segment: 1 << 30, Slot: 1<<30 + 900, Hint: 1<<30 + 900, Upto: 1<<30 + 894}
	require.Len(t, accepted.Append(nil), 14)
	require.Equal(t, []byte{0, 0, 2}, (&ISSPart{Serving: true}).Append(nil))
}

func TestISSPartsComeBack(t *testing.T) {
	gathered := &ISSPart{Segment: 2, Held: []held{{id: 4, upto: 7}, {id: 5, upto: 2, lacking: true}}}
	low := &ISSPart{Segment: 5, Upto: 4, Nil: spans{{from: 5, to: 5}}}
	for _, part := range []*ISSPart{wholeISSPart(), {}, {Hint: 1 << 60}, low, gathered} {
		kind := MsgISSRelay
		if len(part.Held) > 0 {
			kind = MsgISSGathered
		}
		b := part.Append(nil)
		m, err := decodeISS(kind, b)
		require.NoError(t, err)
		require.Equal(t, part, m.Part)
		for cut := range b {
			_, err := decodeISS(kind, b[:cut])
			require.Error(t, err, "%x", b[:cut])
		}
		_, err = decodeISS(kind, append(b, 0))
		require.Error(t, err)
	}
}

// Whatever is read is encoded as it was, and nothing panics.
func FuzzISSParts(f *testing.F) {
	f.Add(byte(MsgISSRelay), wholeISSPart().Append(nil))
	f.Add(byte(MsgISSGathered), (&ISSPart{Segment: 2, Held: []held{{id: 4, upto: 7}}}).Append(nil))
	f.Add(byte(MsgISSBeat), (&ISSPart{Slot: 9, Hint: 9, Serving: true}).Append(nil))
	f.Add(byte(MsgISSAccept), []byte{1, 0, 0, 0x81, 0})
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		if m, err := decodeISS(protocol.MessageType(kind), b); err == nil {
			require.Equal(t, b, m.Part.Append(nil))
		}
	})
}

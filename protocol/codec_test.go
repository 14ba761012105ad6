package protocol

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A protocol for tests: its parts are any text.
type toyPart string

func (p toyPart) Append(dst []byte) []byte { return append(dst, p...) }

const (
	toyTalk = FirstOwnType + iota
	toyMute
	toyTypes
)

var toy = &Codec{
	Types: []Traits{{Name: "Talk", Delivery: Urgent}, {Name: "Mute", Brings: BringsLog}},
	Decode: func(t MessageType, part []byte) (*Message, error) {
		if t == toyMute {
			return nil, &CorruptError{What: "part", Detail: "a mute one"}
		}
		return &Message{Part: toyPart(part)}, nil
	},
}

func TestPartsOfMessages(t *testing.T) {
	refused := func(m *Message, c *Codec) {
		t.Helper()
		require.Equal(t, m.Size(), len(wire(m)))
		_, err := DecodeMessage(wire(m), c)
		require.ErrorAs(t, err, new(*CorruptError))
	}
	for _, part := range []Part{toyPart(""), toyPart("x"), toyPart(bytes.Repeat([]byte{7}, MaxPartBytes))} {
		m := &Message{Type: toyTalk, Instance: 3, From: 1, To: 2, Term: 5, Part: part, Holdings: []Holding{{Index: 1}}}
		require.Equal(t, m.Size(), len(wire(m)))
		got, err := DecodeMessage(wire(m), toy)
		require.NoError(t, err)
		require.Equal(t, m, got)
		refused(m, nil)
		refused(m, &Codec{})
		if m.Part != toyPart("") {
			refused(m, &Codec{Types: toy.Types})
		}
	}
	refused(&Message{Type: toyMute, Part: toyPart("word")}, toy)
	refused(&Message{Type: MsgFetch, Part: toyPart("it has none")}, toy)
	refused(&Message{Type: MsgTail, Part: toyPart("not a slot")}, toy)
	for _, typ := range []MessageType{0, commonTypes, FirstOwnType - 1, toyTypes, 255} {
		refused(&Message{Type: typ}, toy)
	}
}

func TestWhatIsKnownOfTypes(t *testing.T) {
	require.Equal(t, Urgent, toy.Of(toyTalk).Delivery)
	require.Equal(t, BringsLog, toy.Of(toyMute).Brings)
	require.Equal(t, "Tail", toy.Name(MsgTail))
	require.Equal(t, "Mute", toy.Name(toyMute))
	require.Equal(t, "message(16)", (*Codec)(nil).Name(FirstOwnType))
	for _, typ := range []MessageType{0, commonTypes, FirstOwnType - 1, toyTypes, 255} {
		require.Equal(t, Traits{}, *toy.Of(typ))
	}
}

// What a stranger sends is refused and does no harm.
func FuzzDecodeMessage(f *testing.F) {
	f.Add(wire(&Message{Type: toyTalk, Part: toyPart("x"), Entries: []Entry{entryWith(1, 1, FormWhole, []byte("body"))}}))
	f.Add(wire(&Message{Type: MsgFetchResp, Holdings: []Holding{{Index: 1, Digest: Digest([]byte("blob"))}},
		Blob: []byte("blob")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b, toy)
		if err != nil {
			require.True(t, errors.As(err, new(*CorruptError)), err)
			return
		}
		require.Equal(t, m.Size(), len(b))
	})
}

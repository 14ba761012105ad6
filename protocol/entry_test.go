package protocol

import (
	"errors"
	"testing"
)

func TestControlEntries(t *testing.T) {
	for _, e := range []Entry{NewSkip(1<<40 + 7), NewReshape(5), NewLane(Lane{Member: 3, Incarnation: 1 << 60}),
		NewGeneration(1 << 50), NewEmpty(1 << 63)} {
		e.Seal(9, 4, make([]byte, HeadSize))
		got, rest, err := DecodeEntry(e.Head(), true)
		if err != nil || len(rest) > 0 {
			t.Fatalf("%s: %v, %d bytes more", e.Kind, err, len(rest))
		}
		if got.Kind != e.Kind || got.ID != e.ID || got.Low != e.Low || got.Index != 9 || got.Term != 4 ||
			got.Bytes() != HeadSize || got.Width() != 1 {
			t.Errorf("%+v came back as %+v", e, got)
		}
	}
}

// What no member writes is refused, though its checksums are right.
func TestImpossibleEntries(t *testing.T) {
	of := func(member MemberID, incarnation, seq uint64) ProposalID {
		return ProposalID{Session: Session{Member: member, Incarnation: incarnation}, Seq: seq}
	}
	for name, e := range map[string]Entry{
		"no kind":                 {},
		"kind that is not known":  {Kind: entryKinds},
		"noop with commands":      {Kind: EntryNoop, Count: 1},
		"skip with a payload":     {Kind: EntrySkip, Low: 3, Payload: []byte("x")},
		"reshape with commands":   {Kind: EntryReshape, Low: 3, Count: 1},
		"empty with a payload":    {Kind: EntryEmpty, ID: of(1, 0, 0), Payload: []byte("x")},
		"empty with a body":       {Kind: EntryEmpty, ID: of(1, 0, 0), Body: []byte("x")},
		"empty with commands":     {Kind: EntryEmpty, ID: of(1, 0, 0), Count: 1},
		"empty of nobody":         {Kind: EntryEmpty},
		"empty of one life":       {Kind: EntryEmpty, ID: of(1, 1, 0)},
		"empty with a number":     {Kind: EntryEmpty, ID: of(1, 0, 1)},
		"empty that settles":      {Kind: EntryEmpty, ID: of(1, 0, 0), Low: 1},
		"configuration and body":  {Kind: EntryConfig, Payload: []byte("{}"), Body: []byte("x")},
		"configuration and count": {Kind: EntryConfig, Payload: []byte("{}"), Count: 1},
	} {
		e.SealPayload()
		e.Seal(1, 1, make([]byte, HeadSize))
		if _, _, err := DecodeEntry(append(e.Head(), e.Payload...), true); !errors.As(err, new(*CorruptError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTailMessage(t *testing.T) {
	m := &Message{Type: MsgTail, Instance: 3, From: 1, To: 2, Part: Wanted{1 << 40, 7}}
	got, err := DecodeMessage(wire(m), nil)
	if err != nil || got.Type != m.Type || got.Instance != 3 || got.From != 1 || got.To != 2 || got.Part != m.Part {
		t.Errorf("%+v came back as %+v: %v", m, got, err)
	}
}

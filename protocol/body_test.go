package protocol

import (
	"bytes"
	"errors"
	"testing"
)

// wire is a message as it travels.
func wire(m *Message) []byte {
	b := m.AppendHead(nil)
	for i := range m.Entries {
		e := &m.Entries[i]
		b = append(append(b, e.Head()...), e.Payload...)
		if e.BodySize > 0 {
			b = append(e.AppendBodyHead(b), e.Body...)
		}
	}
	return append(m.AppendHoldings(b), m.Blob...)
}

func entryWith(index Index, k uint8, form Form, body []byte) Entry {
	e := Entry{Kind: EntryBatch, Count: 1, ID: ProposalID{Session{1, 2}, 3}, Payload: []byte("header"), Body: body}
	e.SealPayload()
	e.K, e.Form = k, form
	e.Body = body[:form.Len(e.BodySize, k)]
	e.Seal(index, 7, make([]byte, HeadSize))
	return e
}

func TestMessageWithBodies(t *testing.T) {
	body := bytes.Repeat([]byte("abcdefg"), 100)
	part := body[:300]
	m := &Message{
		Type: toyTalk, Instance: 1, From: 1, To: 2, Term: 7, Reject: true, Part: toyPart("part"),
		Entries: []Entry{entryWith(1, 1, FormWhole, body), entryWith(2, 3, RowForm(4), body),
			entryWith(3, 3, FormNone, body)},
		Holdings: []Holding{{Index: 9, Term: 8, Form: RowForm(252), Digest: Digest(part)}},
		Blob:     part,
	}
	b := wire(m)
	got, err := DecodeMessage(b, toy)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Entries {
		w, g := &m.Entries[i], &got.Entries[i]
		if g.K != w.K || g.Form != w.Form || g.BodySize != w.BodySize || g.BodyDigest != w.BodyDigest ||
			!bytes.Equal(g.Body, w.Body) || !g.Resident() {
			t.Errorf("entry %d: got %+v, want %+v", i, g, w)
		}
	}
	if got.Part != m.Part || !got.Reject || len(got.Holdings) != 1 || got.Holdings[0] != m.Holdings[0] ||
		!bytes.Equal(got.Blob, part) {
		t.Errorf("got %+v", got)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, err := DecodeMessage(bad, toy); !errors.As(err, new(*CorruptError)) {
			t.Fatalf("byte %d of %d flipped: %v", i, len(b), err)
		}
		if _, err := DecodeMessage(b[:i], toy); !errors.As(err, new(*CorruptError)) {
			t.Fatalf("cut at %d of %d: %v", i, len(b), err)
		}
	}
}

func TestForms(t *testing.T) {
	if FragmentLen(10, 3) != 4 || FragmentLen(9, 3) != 3 || FormWhole.Len(10, 3) != 10 || FormNone.Len(10, 3) != 0 ||
		RowForm(7).Len(10, 3) != 4 {
		t.Error("lengths")
	}
	for r := range Rows {
		if got, ok := RowForm(uint8(r)).Row(); !ok || int(got) != r {
			t.Fatalf("row %d: %d, %t", r, got, ok)
		}
	}
	if _, ok := FormCommitted.Row(); ok || !FormWhole.Better(RowForm(0)) || !RowForm(0).Better(FormNone) ||
		RowForm(0).Better(RowForm(1)) {
		t.Error("order of forms")
	}
}

// A checksum holds for the bytes that it was computed of, and for no others.
func TestBodySum(t *testing.T) {
	body := bytes.Repeat([]byte("abcdefg"), 100)
	e := entryWith(1, 1, FormWhole, body)
	if crc, known := e.BodySum(); !known || crc != Digest(body) {
		t.Errorf("sealed: %08x, %v", crc, known)
	}
	part := entryWith(2, 3, RowForm(4), body)
	if _, known := part.BodySum(); known {
		t.Error("of a part of the body that was sealed")
	}
	got, err := DecodeMessage(wire(&Message{Type: toyTalk, Instance: 1, From: 1, To: 2, Term: 7,
		Entries: []Entry{e, part, entryWith(3, 3, FormNone, body)}}), toy)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if crc, known := got.Entries[i].BodySum(); !known || crc != Digest(got.Entries[i].Body) {
			t.Errorf("decoded %d: %08x, %v", i, crc, known)
		}
	}
	if _, known := got.Entries[2].BodySum(); known {
		t.Error("of no body")
	}
	decoded := got.Entries[1]
	decoded.Body = bytes.Clone(decoded.Body)
	if _, known := decoded.BodySum(); known {
		t.Error("of another body")
	}
}

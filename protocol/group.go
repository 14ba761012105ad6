package protocol

import "fmt"

// A group is one entry with any number of batches, of any sessions. A core makes it of members' proposals, so that
// all of them are decided at once. Each of its batches takes effect at most once, like any other. Its payload is the
// batches as they were proposed, one after the other: envelope and payload, without an index. A body is never in a
// group with other batches: the group of one batch may have the batch's body, as its own.
//
// A core may put notes between the batches, each an EntryNote that only the core understands. All others skip them.

// NewGroup returns the group of some batches, not yet sealed.
func NewGroup(batches []Entry) Entry { return NewNotedGroup(nil, batches) }

// NewNotedGroup returns the group of some batches after a note, not yet sealed. There may be no batches. An empty
// note is omitted.
func NewNotedGroup(note []byte, batches []Entry) Entry {
	size := 0
	if len(note) > 0 {
		batches = append([]Entry{newNote(note)}, batches...)
	}
	for i := range batches {
		size += HeadSize + len(batches[i].Payload)
	}
	e := Entry{Kind: EntryGroup, Payload: make([]byte, size)}
	rest := e.Payload
	for _, b := range batches {
		b.K, b.BodySize, b.BodyDigest = 0, 0, 0
		b.Seal(0, 0, rest) // each head is encoded in place
		rest = rest[HeadSize+copy(rest[HeadSize:], b.Payload):]
		e.Count += b.Count
	}
	e.SealPayload()
	if len(batches) == 1 {
		e.takeBody(&batches[0])
	}
	return e
}

func newNote(note []byte) Entry {
	e := Entry{Kind: EntryNote, Payload: note}
	e.SealPayload()
	return e
}

// JoinGroups returns one group with the notes and batches of several ones, not yet sealed. They have no bodies, and
// their payloads are available.
func JoinGroups(groups []Entry) Entry {
	e := Entry{Kind: EntryGroup}
	for i := range groups {
		e.Payload = append(e.Payload, groups[i].Payload...)
		e.Count += groups[i].Count
	}
	e.SealPayload()
	return e
}

// Notes returns the notes of a group, whose payload is available. They alias it. It returns a [CorruptError] if the
// entry is not a group.
func (e *Entry) Notes() (notes [][]byte, err error) {
	for rest := e.Payload; len(rest) > 0; {
		var item Entry
		if item, rest, err = nextItem(rest); err != nil {
			return nil, err
		}
		if item.Kind == EntryNote {
			notes = append(notes, item.Payload)
		}
	}
	return notes, nil
}

// takeBody makes another entry's body this one's, as far as available.
func (e *Entry) takeBody(of *Entry) {
	e.K, e.BodySize, e.BodyDigest, e.Form, e.Body = of.K, of.BodySize, of.BodyDigest, of.Form, of.Body
}

// nextItem splits the first batch or note off a group's payload.
func nextItem(b []byte) (item Entry, rest []byte, err error) {
	if item, rest, err = DecodeEntry(b, false); err == nil && (item.Kind != EntryBatch && item.Kind != EntryNote ||
		item.BodySize > 0) {
		err = &CorruptError{What: "group", Detail: fmt.Sprintf("it holds a %s with a body of %d bytes", item.Kind,
			item.BodySize)}
	}
	return item, rest, err
}

// NextBatch splits the first batch off a group's payload. ok: there was one. It returns a [CorruptError] if there is
// anything but batches and notes. The batch aliases b.
func NextBatch(b []byte) (batch Entry, rest []byte, ok bool, err error) {
	for rest = b; len(rest) > 0 && err == nil; {
		if batch, rest, err = nextItem(rest); err == nil && batch.Kind == EntryBatch {
			return batch, rest, true, nil
		}
	}
	return Entry{}, rest, false, err
}

// Batches appends a group's batches to out. It returns a [CorruptError] if they do not match the envelope. The
// payload must be available.
func (e *Entry) Batches(out []Entry) ([]Entry, error) {
	commands, before := uint64(0), len(out)
	for rest := e.Payload; ; {
		b, next, ok, err := NextBatch(rest)
		if err != nil {
			return out, err
		}
		if !ok {
			break
		}
		rest, out, commands = next, append(out, b), commands+uint64(b.Count)
	}
	if commands != uint64(e.Count) {
		return out, &CorruptError{What: "group", Detail: fmt.Sprintf("it holds %d commands, not %d", commands, e.Count)}
	}
	if e.BodySize > 0 {
		if len(out) != before+1 {
			return out, &CorruptError{What: "group", Detail: fmt.Sprintf("it holds %d batches and a body", len(out)-before)}
		}
		out[before].takeBody(e)
	}
	return out, nil
}

// CheckGroup reports what is wrong with a group or with one of its batches.
func (e *Entry) CheckGroup() error {
	batches, err := e.Batches(nil)
	for i := range batches {
		if err == nil {
			err = batches[i].CheckBatch()
		}
	}
	return err
}

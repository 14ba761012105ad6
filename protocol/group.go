package protocol

import "fmt"

// A group is one entry that stands for any number of batches, of any sessions. A core makes it of what
// members proposed, so that all of it is decided at once. Each of its batches takes effect at most once,
// like any other. Its payload is the batches as they were proposed, one after the other: envelope and
// payload, without an index. A body is never in a group with other batches: the group of one batch may have
// the batch's body, as its own.

// NewGroup returns the group of some batches, not yet sealed.
func NewGroup(batches []Entry) Entry {
	size := 0
	for i := range batches {
		size += HeadSize + len(batches[i].Payload)
	}
	e := Entry{Kind: EntryGroup, Payload: make([]byte, size)}
	rest := e.Payload
	for _, b := range batches {
		b.K, b.BodySize, b.BodyDigest = 0, 0, 0
		b.Seal(0, 0, rest) // each head is encoded where it stands
		rest = rest[HeadSize+copy(rest[HeadSize:], b.Payload):]
		e.Count += b.Count
	}
	e.SealPayload()
	if len(batches) == 1 {
		e.takeBody(&batches[0])
	}
	return e
}

// takeBody makes another entry's body this one's, as far as it is held.
func (e *Entry) takeBody(of *Entry) {
	e.K, e.BodySize, e.BodyDigest, e.Form, e.Body = of.K, of.BodySize, of.BodyDigest, of.Form, of.Body
}

// NextBatch splits the first batch off a group's payload. It returns a [CorruptError] if there is
// none. The batch aliases b.
func NextBatch(b []byte) (batch Entry, rest []byte, err error) {
	if batch, rest, err = DecodeEntry(b, false); err == nil && (batch.Kind != EntryBatch || batch.BodySize > 0) {
		err = &CorruptError{What: "group", Detail: fmt.Sprintf("it holds a %s with a body of %d bytes", batch.Kind, batch.BodySize)}
	}
	return batch, rest, err
}

// Batches appends a group's batches to out. It returns a [CorruptError] if they are not what the
// envelope says. The payload must be at hand.
func (e *Entry) Batches(out []Entry) ([]Entry, error) {
	commands, before := uint64(0), len(out)
	for rest := e.Payload; len(rest) > 0; {
		b, next, err := NextBatch(rest)
		if err != nil {
			return out, err
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

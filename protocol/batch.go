package protocol

import (
	"encoding/binary"
	"fmt"
)

// AppendCommand appends one command to a batch payload: its length as a uvarint, then
// its bytes.
func AppendCommand(dst, command []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(command)))
	return append(dst, command...)
}

// CheckProposal reports what is wrong with an entry that this member or another one proposes. A leader calls it
// before it appends the entry, because all members apply appended entries.
func (e *Entry) CheckProposal() error {
	switch {
	case e.Kind == EntryBatch && !e.Applicable():
		return &CorruptError{What: "batch", Detail: fmt.Sprintf("%d of %d bytes are at hand", len(e.Payload), e.Size)}
	case e.Kind == EntryBatch:
		return e.CheckBatch()
	case e.Kind == EntryReshape && (e.Low < 1 || e.Low > MaxInstances):
		return &CorruptError{What: "reshape", Detail: fmt.Sprintf("%d instances", e.Low)}
	case e.Kind == EntryReshape || e.Kind == EntrySkip:
		return nil
	case e.Kind == EntrySeal:
		_, err := DecodeSeal(e.Payload)
		return err
	}
	return &CorruptError{What: "proposal", Detail: "of kind " + e.Kind.String()}
}

// CheckBatch reports what is wrong with a proposed or committed batch: its payload is not exactly
// its commands, its body is not one command's, or its numbers make no sense. The payload must be
// available. Digests do not find such a fault: the member that made the wrong batch computed them
// from it.
func (e *Entry) CheckBatch() error {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{What: "batch", Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case e.Count == 0 && e.Size > 0, e.Count != 1 && e.BodySize > 0:
		return corrupt("%d commands with %d bytes and a body of %d", e.Count, e.Size, e.BodySize)
	case e.Low > e.ID.Seq, e.ID.Seq+uint64(e.Count) < e.ID.Seq:
		return corrupt("%d commands from number %d on, none below %d", e.Count, e.ID.Seq, e.Low)
	case uint64(e.Count) > uint64(len(e.Payload)): // each has at least its length
		return corrupt("%d commands in %d bytes", e.Count, len(e.Payload))
	}
	b, at := e.Payload, 0
	for range e.Count {
		if at < len(b) && b[at] < 0x80 { // short, as most are: millions a second come through here
			at += 1 + int(b[at])
			continue
		}
		if at > len(b) {
			break
		}
		_, rest, err := NextCommand(b[at:])
		if err != nil {
			return err
		}
		at = len(b) - len(rest)
	}
	if at != len(b) {
		return corrupt("%d commands end after %d of %d bytes", e.Count, at, len(b))
	}
	return nil
}

// NextCommand splits the first command off a batch payload. It returns a [CorruptError]
// if the payload is malformed. The command aliases b.
func NextCommand(b []byte) (command, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, &CorruptError{What: "batch", Detail: fmt.Sprintf("command length in the last %d bytes", len(b))}
	}
	end := w + int(n)
	return b[w:end:end], b[end:], nil
}

package epaxos

import (
	"encoding/binary"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Append appends the record's encoding, as it is in a cell of the disk. The entry was sealed.
func (r *Record) Append(dst []byte) []byte {
	known := r.Command != nil
	dst = append(dst, byte(r.Phase), slots.Flags(r.Noop, r.Begun, known))
	dst = appendID(dst, r.ID)
	dst = binary.AppendUvarint(dst, uint64(r.Promised))
	dst = binary.AppendUvarint(dst, uint64(r.Ballot))
	dst = appendVector(dst, r.Deps)
	if known {
		dst = appendVector(dst, r.Command.First)
		dst = append(append(dst, r.Command.Entry.Head()...), r.Command.Entry.Payload...)
	}
	return dst
}

// DecodeRecord decodes a record. Its entry aliases b.
func DecodeRecord(b []byte) (*Record, error) {
	in := reader{b: b}
	rec := &Record{Phase: Phase(in.byte())}
	flags := in.byte()
	rec.ID = in.id()
	rec.Promised, rec.Ballot, rec.Deps = Ballot(in.number()), Ballot(in.number()), in.vector()
	rec.Noop, rec.Begun = slots.Flag(flags, 0), slots.Flag(flags, 1)
	if slots.Flag(flags, 2) {
		first := in.vector()
		e, rest, err := protocol.DecodeEntry(in.b, true)
		if err != nil {
			return nil, err
		}
		if rec.Command, err = commandOf(rec.ID, e); err != nil {
			return nil, err
		}
		rec.Command.First, in.b = first, rest
	}
	if !in.ended() || rec.Phase > Decided || flags > 7 || rec.ID.Column == 0 || rec.ID.Number == 0 {
		return nil, corrupt("record of a command", b)
	}
	return rec, nil
}

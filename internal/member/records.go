package member

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// The records of an instance that are not entries, as they stand in the log on disk.

func encodeState(s protocol.HardState) []byte {
	b := make([]byte, 0, 24)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Term))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Vote))
	return binary.LittleEndian.AppendUint64(b, uint64(s.Commit))
}

func DecodeState(b []byte) (s protocol.HardState, err error) {
	if len(b) != 24 {
		return s, &protocol.CorruptError{What: "hard state", Detail: fmt.Sprintf("%d bytes, want 24", len(b))}
	}
	u := binary.LittleEndian.Uint64
	return protocol.HardState{Term: protocol.Term(u(b)), Vote: protocol.MemberID(u(b[8:])),
		Commit: protocol.Index(u(b[16:]))}, nil
}

func encodeBase(base protocol.Base) []byte {
	b, err := json.Marshal(base)
	if err != nil {
		panic(err) // numbers and strings alone: this cannot fail
	}
	return b
}

func DecodeBase(b []byte) (base protocol.Base, err error) {
	if err := json.Unmarshal(b, &base); err != nil {
		return base, &protocol.CorruptError{What: "base", Detail: err.Error()}
	}
	return base, nil
}

// ReadRecord reads a record of the log on disk, without deciding whether it counts. ok is false if it is none
// of an instance, or cannot be read. It refers to data.
func ReadRecord(kind wal.Kind, index uint64, data []byte) (r protocol.Record, ok bool) {
	var err error
	switch kind {
	case wal.KindState:
		r.Kind = protocol.RecordState
		r.State, err = DecodeState(data)
	case wal.KindBase:
		var base protocol.Base
		base, err = DecodeBase(data)
		r.Kind, r.Base = protocol.RecordBase, &base
	case wal.KindEntry:
		r.Kind = protocol.RecordEntry
		r.Entry, _, err = protocol.DecodeEntry(data, false)
	case wal.KindCell:
		r.Kind, r.Cell = protocol.RecordCell, protocol.Cell{Number: index, Data: data}
	case wal.KindDrop:
		r.Kind, r.Cell = protocol.RecordDrop, protocol.Cell{Number: index}
	default:
		return r, false
	}
	return r, err == nil
}

// WALRecord turns a core's record into the log's. The entry's bytes are those that are sent, not a
// copy of them. An entry of whose body nothing is held says so on disk too. If the disk says
// nothing of a body, it was lost.
func WALRecord(instance protocol.InstanceID, r *protocol.Record) wal.Record {
	w := wal.Record{Instance: uint32(instance)}
	switch r.Kind {
	case protocol.RecordEntry:
		w.Kind, w.Index = wal.KindEntry, uint64(r.Entry.Index)
		w.Parts = [2][]byte{r.Entry.Head(), r.Entry.Payload}
		w.Grows = r.Entry.Kind == protocol.EntryReshape && r.Entry.Instances() > 1
		w.Seals = r.Entry.Kind == protocol.EntrySeal
		if r.Entry.BodySize > 0 {
			w.Body = bodyOf(instance, &r.Entry)
		}
	case protocol.RecordBody:
		w.Kind, w.Index, w.Body = wal.KindBody, uint64(r.Entry.Index), bodyOf(instance, &r.Entry)
	case protocol.RecordState:
		w.Kind, w.Parts[0] = wal.KindState, encodeState(r.State)
	case protocol.RecordBase:
		w.Kind, w.Index, w.Parts[0] = wal.KindBase, uint64(r.Base.Index), encodeBase(*r.Base)
		w.Seals = r.Base.Config.Profile.Sealed()
	case protocol.RecordCell:
		w.Kind, w.Index, w.Parts = wal.KindCell, r.Cell.Number, [2][]byte{r.Cell.Data, r.Cell.Rest}
		if r.Entry.Form != protocol.FormNone {
			w.Body = bodyOf(instance, &r.Entry)
		}
	case protocol.RecordDrop:
		w.Kind, w.Index = wal.KindDrop, r.Cell.Number
	}
	return w
}

func bodyOf(instance protocol.InstanceID, e *protocol.Entry) *wal.Body {
	if len(e.Body) != e.BodyLen() {
		panic(fmt.Sprintf("member: %d bytes as %s of the body of entry %d, want %d", len(e.Body), e.Form, e.Index,
			e.BodyLen()))
	}
	b := BodyRecord(e.Ref(instance), e.Form, e.Body).Body
	b.Checksum, b.Checked = e.BodySum()
	return b
}

// BodyRecord is the record that makes a body durable apart from its entry.
func BodyRecord(ref protocol.BodyRef, form protocol.Form, bytes []byte) wal.Record {
	return wal.Record{
		Kind: wal.KindBody, Instance: uint32(ref.Instance), Index: uint64(ref.Index),
		Body: &wal.Body{
			Instance: uint32(ref.Instance), Index: uint64(ref.Index), Term: uint64(ref.Term),
			Form: uint8(form), K: ref.K, Size: ref.Size, Digest: ref.Digest, Bytes: bytes,
		},
	}
}

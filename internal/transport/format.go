package transport

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net"

	"github.com/braidlog/braid/internal/format"
)

// Format is what a member says of the formats of the log and of frames (package format). There is no link between a
// member that writes a format and a member that does not know it. Zero fields: only the first format is known.
type Format struct{ Written, Newest int }

const formatSize = 2 * 4

func (f Format) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(f.Written))
	return binary.LittleEndian.AppendUint32(b, uint32(f.Newest))
}

func decodeFormat(b []byte) Format {
	return Format{int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))}.orFirst()
}

// orFirst is f with the first format in place of none.
func (f Format) orFirst() Format {
	return Format{cmp.Or(f.Written, format.First), cmp.Or(f.Newest, format.First)}
}

// Differs returns the reason why one of two members does not know what the other one writes; "": both do.
func (f Format) Differs(there Format) string {
	f, there = f.orFirst(), there.orFirst()
	switch {
	case f.Written > there.Newest:
		return fmt.Sprintf("the log has format %d, the other member knows formats up to %d: run a version there that "+
			"knows format %[1]d", f.Written, there.Newest)
	case there.Written > f.Newest:
		return fmt.Sprintf("the log has format %d, this member knows formats up to %d: run a version here that knows "+
			"format %[1]d", there.Written, f.Newest)
	}
	return ""
}

// checkFormat decides about what a member says of formats. A refusal is a *HandshakeError.
func (t *Transport) checkFormat(id uint64, conn net.Conn, own, there Format) error {
	if d := own.Differs(there); d != "" {
		return &HandshakeError{Peer: id, Addr: conn.RemoteAddr().String(), Reason: ReasonVersion, Detail: d}
	}
	return nil
}

// ownFormat is what this member says now.
func (t *Transport) ownFormat() Format {
	if t.opt.Settings == nil {
		return Format{}.orFirst()
	}
	return t.opt.Settings().Format.orFirst()
}

// noteFormat notes the newest format that a member knows, and makes this member write the one that the other writes.
func (t *Transport) noteFormat(id uint64, there Format) error {
	if p := t.peer(id); p != nil {
		p.newest.Store(int32(there.Newest))
	}
	if there.Written <= int(t.format.Load()) || t.opt.Writes == nil {
		return nil
	}
	if err := t.opt.Writes(id, there.Written); err != nil {
		return err
	}
	t.WriteFormat(there.Written)
	return nil
}

// WriteFormat makes frames have a format from now on, and ends links with members that do not know it: they knew it
// when it was decided, and went back to an earlier version since. The format never decreases. WriteFormat may be called
// at any time and does not wait.
func (t *Transport) WriteFormat(to int) {
	for was := t.format.Load(); ; was = t.format.Load() {
		if int(was) >= to {
			return
		}
		if t.format.CompareAndSwap(was, int32(to)) {
			break
		}
	}
	for id, p := range *t.peers.Load() { // any order
		if int(p.newest.Load()) < to {
			t.Drop(id)
		}
	}
}

// frameFormat is the byte of a frame's header that has its format: how far that is above the first one. A frame has the
// format that its sender writes when it is queued. A receiver that writes an earlier one refuses it, and the link ends:
// in the next handshake it records the format, before it receives anything that is in it.
func (t *Transport) frameFormat() byte { return byte(format.Above(int(t.format.Load()))) }

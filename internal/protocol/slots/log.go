package slots

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Log has the decided entries after a snapshot, contiguous.
type Log struct {
	// Base is the index before the first entry. ConfigAt is the index of the last configuration; 0: the
	// first one.
	Base, ConfigAt protocol.Index
	// pieces hold the entries from Base+1 on, count of them. Entries never move: a growing slice would copy each of them
	// several times. The first piece begins with gone entries that were dropped.
	//
	//	gone < pieceLen; gone+count fill the pieces except for the end of the last one, in which there is an entry
	pieces      []*[pieceLen]protocol.Entry
	gone, count int
	// Entries up to light have no payload; held is the bytes of the others.
	light protocol.Index
	held  int
}

// pieceLen is the number of entries in a piece of memory of the log.
const pieceLen = 64

// logAfter is an empty log after a base, whose configuration is active.
func logAfter(base protocol.Index) Log { return Log{Base: base, ConfigAt: base, light: base} }

// Last is the index of the last entry; Base if there is none.
func (l *Log) Last() protocol.Index { return l.Base + protocol.Index(l.count) }

// at is the entry of an index, in place.
func (l *Log) at(i protocol.Index) *protocol.Entry {
	k := uint(l.gone) + uint(i-l.Base-1)
	return &l.pieces[k/pieceLen][k%pieceLen]
}

// Settled is the last index that may be handed over as committed: everything that is decided, except for a
// configuration at the end. Once that is committed, the members that it removes may leave, and the others may need
// them to learn that it is decided. When the next slot is decided, a quorum of its own voters has all up to it.
func (l *Log) Settled() protocol.Index {
	if at := l.ConfigAt; at == l.Last() && at > l.Base {
		return at - 1
	}
	return l.Last()
}

// At is an entry with its envelope, which Lighten dropped.
func (l *Log) At(i protocol.Index) protocol.Entry {
	e := *l.at(i)
	if e.Head() == nil {
		e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
	}
	return e
}

// Append adds the entry after the last one.
func (l *Log) Append(e protocol.Entry) {
	if l.gone+l.count == pieceLen*len(l.pieces) {
		l.pieces = append(l.pieces, new([pieceLen]protocol.Entry))
	}
	l.count++
	*l.at(l.Last()) = e
	l.held += e.Bytes()
	if e.Kind == protocol.EntryConfig {
		l.ConfigAt = e.Index
	}
}

// Load adds a decided entry from the disk. It returns the entry's configuration, nil if it has none, or a
// [*protocol.CorruptError].
func (l *Log) Load(e *protocol.Entry) (*protocol.Config, error) {
	if e.Index != l.Last()+1 {
		return nil, &protocol.CorruptError{What: "recovered log", Detail: fmt.Sprintf("entry %d after %d", e.Index, l.Last())}
	}
	l.Append(*e)
	if e.Kind != protocol.EntryConfig {
		return nil, nil
	}
	c, err := protocol.DecodeConfig(e.Payload)
	return &c, err
}

// Lighten drops payloads of the oldest entries beyond a number of bytes, as far as the disk holds them.
func (l *Log) Lighten(durable protocol.Index, most int) {
	l.light = max(l.light, l.Base)
	for l.light < durable && l.held > most {
		l.light++
		e := l.at(l.light)
		l.held -= e.Bytes()
		e.Lighten(!e.Kind.Commands()) // the owner of the log applies configurations from here
	}
}

// Diverges returns an error if another member has decided another entry than this log has in the slot; nil if it is
// the same, or if this log does not have the slot. A slot is decided once, and with the term in which its entry was
// first proposed.
func (l *Log) Diverges(instance protocol.InstanceID, from protocol.MemberID,
	e *protocol.Entry) *protocol.DivergedError {
	if e.Index <= l.Base || e.Index > l.Last() {
		return nil
	}
	return Diverges(instance, from, l.at(e.Index), e)
}

// Diverges is [Log.Diverges] for an entry that is decided here.
func Diverges(instance protocol.InstanceID, from protocol.MemberID, have, e *protocol.Entry) *protocol.DivergedError {
	if have.Term == e.Term && have.Kind == e.Kind && have.ID == e.ID && have.Digest == e.Digest &&
		have.BodyDigest == e.BodyDigest {
		return nil
	}
	return &protocol.DivergedError{Instance: instance, From: from, Index: e.Index, Term: have.Term, Other: e.Term}
}

// Compact drops entries that a durable snapshot covers.
func (l *Log) Compact(to protocol.Index) {
	for l.Base < to {
		e := l.at(l.Base + 1)
		if l.Base+1 > l.light {
			l.held -= e.Bytes()
		}
		*e = protocol.Entry{} // its memory
		l.Base, l.gone, l.count = l.Base+1, l.gone+1, l.count-1
		if l.gone == pieceLen || l.count == 0 {
			l.pieces[0], l.pieces, l.gone = nil, l.pieces[1:], 0
		}
	}
}

// Run returns copies of the entries after an index, as many as fit into one message. most limits their number; 0: no
// limit.
func (l *Log) Run(after protocol.Index, bytes, most int) []protocol.Entry {
	last := l.Last()
	if most > 0 {
		last = min(last, after+protocol.Index(most))
	}
	out := make([]protocol.Entry, l.fitting(after, last, bytes))
	for i := range out {
		out[i] = l.At(after + 1 + protocol.Index(i))
		if e := &out[i]; e.BodySize > 0 {
			e.Form = protocol.FormWhole // missing bytes may have arrived
		}
	}
	return out
}

// fitting is the number of entries after an index, and up to another one, whose size is at most bytes, as in
// protocol.Fitting.
func (l *Log) fitting(after, last protocol.Index, bytes int) int {
	for i := after + 1; i <= last; i++ {
		if bytes -= l.at(i).Bytes(); bytes < 0 && i > after+1 {
			return int(i - after - 1)
		}
	}
	return int(last - after)
}

// Check verifies the invariants.
func (l *Log) Check() error {
	if pieces := (l.gone + l.count + pieceLen - 1) / pieceLen; l.gone >= pieceLen || len(l.pieces) != pieces {
		return fmt.Errorf("%d entries after %d in %d pieces", l.count, l.gone, len(l.pieces))
	}
	held := 0
	for i := l.Base + 1; i <= l.Last(); i++ {
		e := l.at(i)
		if e.Index != i || e.Term == 0 {
			return fmt.Errorf("entry %d of term %d at %d", e.Index, e.Term, i)
		}
		if e.Index > l.light {
			held += e.Bytes()
		}
	}
	if held != l.held {
		return fmt.Errorf("entries of %d bytes are held, says %d", held, l.held)
	}
	return nil
}

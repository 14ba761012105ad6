package slots

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Log are the decided entries after a snapshot, contiguous.
type Log struct {
	// Base is the index before the first entry. ConfigAt is the index of the last configuration; 0: the
	// first one.
	Base, ConfigAt protocol.Index
	entries        []protocol.Entry // Base+1 …
	// Entries up to light hold no payload; held is the bytes of the others.
	light protocol.Index
	held  int
}

// logAfter is an empty log after a base, whose configuration is in force.
func logAfter(base protocol.Index) Log { return Log{Base: base, ConfigAt: base, light: base} }

// Last is the index of the last entry; Base if there is none.
func (l *Log) Last() protocol.Index { return l.Base + protocol.Index(len(l.entries)) }

// Settled is up to where the log may be handed over as committed: all that is decided, but not a configuration
// at its end. Once that is committed, the members that it removes may leave, and the others may need them
// to learn that it is decided. When the next slot is decided, a quorum of its own voters has all up to it.
func (l *Log) Settled() protocol.Index {
	if at := l.ConfigAt; at == l.Last() && at > l.Base {
		return at - 1
	}
	return l.Last()
}

// At is an entry with its envelope, which Lighten dropped.
func (l *Log) At(i protocol.Index) protocol.Entry {
	e := l.entries[i-l.Base-1]
	if e.Head() == nil {
		e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
	}
	return e
}

// Append adds the entry after the last one.
func (l *Log) Append(e protocol.Entry) {
	l.entries = append(l.entries, e)
	l.held += e.Bytes()
	if e.Kind == protocol.EntryConfig {
		l.ConfigAt = e.Index
	}
}

// Load takes a decided entry from the disk. It returns the configuration that the entry brings, nil if
// it is none, or a [*protocol.CorruptError].
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
		e := &l.entries[l.light-l.Base-1]
		l.held -= e.Bytes()
		e.Lighten(!e.Kind.Commands()) // who applies configurations reads them here
	}
}

// Compact forgets entries that a durable snapshot covers.
func (l *Log) Compact(to protocol.Index) {
	for ; l.Base < to; l.Base++ {
		if l.Base+1 > l.light {
			l.held -= l.entries[0].Bytes()
		}
		l.entries[0] = protocol.Entry{} // its memory
		l.entries = l.entries[1:]
	}
}

// Run returns copies of the entries after an index, as many as go into one message. most bounds their
// number; 0: nothing does.
func (l *Log) Run(after protocol.Index, bytes, most int) []protocol.Entry {
	entries := l.entries[after-l.Base:]
	if most > 0 && len(entries) > most {
		entries = entries[:most]
	}
	out := make([]protocol.Entry, protocol.Fitting(entries, bytes))
	for i := range out {
		out[i] = l.At(after + 1 + protocol.Index(i))
		if e := &out[i]; e.BodySize > 0 {
			e.Form = protocol.FormWhole // what was missing may be here by now
		}
	}
	return out
}

// Check verifies the invariants.
func (l *Log) Check() error {
	held := 0
	for i := range l.entries {
		e := &l.entries[i]
		if e.Index != l.Base+1+protocol.Index(i) || e.Term == 0 {
			return fmt.Errorf("entry %d of term %d at %d", e.Index, e.Term, l.Base+1+protocol.Index(i))
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

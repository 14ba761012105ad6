package epaxos

import (
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// A command is encoded, in messages and on disk, as a group of batches after a note (protocol.NewNotedGroup). The
// note has the command's id and what it touches. So an entry of the log is self-describing.

// note is the header of the batches of a command.
type note struct {
	ID      ID
	Noop    bool // there are no batches, and nothing is touched
	Touches Touches
}

func (n *note) append(dst []byte) []byte {
	dst = appendID(append(dst, slots.Flags(n.Noop)), n.ID)
	return appendTouches(dst, n.Touches)
}

func decodeNote(b []byte) (note, error) {
	in := reader{b: b}
	flags := in.byte()
	n := note{ID: in.id(), Noop: slots.Flag(flags, 0), Touches: in.touches()}
	if !in.ended() || flags > 1 || n.ID.Column == 0 || n.ID.Number == 0 || n.Noop && len(n.Touches) > 0 {
		return n, corrupt("note of a command", b)
	}
	return n, nil
}

// NewEntry returns the entry of a command, as members send it to each other.
func NewEntry(id ID, t Touches, batches []protocol.Entry) protocol.Entry {
	e := protocol.NewNotedGroup((&note{ID: id, Touches: t}).append(nil), batches)
	return seal(e, protocol.Index(id.Number), protocol.Term(id.Column), countsOf(Component{id}))
}

// noopEntry is the entry of a no-op in place of a command.
func noopEntry(id ID) protocol.Entry {
	return protocol.NewNotedGroup((&note{ID: id, Noop: true}).append(nil), nil)
}

// termOf is the term of an entry of the log, a digest of what is executed up to it: equal on members that have
// executed the same. So a log continues from a snapshot only if the snapshot has the same commands. The lowest bit
// tells whether members meet at the entry (rule 12).
func termOf(executed Vector, met bool) protocol.Term {
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range appendVector(nil, executed) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	t := protocol.Term(h&^1 | 2) // no term is 0
	if met {
		t |= 1
	}
	return t
}

// meets reports whether members meet at an entry of the log.
func meets(e *protocol.Entry) bool { return e.Term&1 != 0 }

// notesOf returns the commands of an entry, whose payload is available.
func notesOf(e *protocol.Entry) (notes []note, err error) {
	said, err := e.Notes()
	if err != nil {
		return nil, err
	}
	for _, b := range said {
		n, err := decodeNote(b)
		if err != nil {
			return nil, err
		}
		notes = append(notes, n)
	}
	if len(notes) == 0 || e.Kind != protocol.EntryGroup || e.BodySize > 0 {
		return nil, corrupt("entry of commands", nil)
	}
	return notes, nil
}

// commandOf decodes a proposed command. It returns a [*protocol.CorruptError].
func commandOf(id ID, e protocol.Entry) (*Command, error) {
	notes, err := notesOf(&e)
	switch {
	case err != nil:
		return nil, err
	case len(notes) != 1 || notes[0].ID != id || notes[0].Noop:
		return nil, corrupt("command "+id.String(), e.Payload)
	}
	return &Command{Entry: e, Touches: notes[0].Touches}, e.CheckGroup()
}

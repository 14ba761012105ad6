package lane

import "github.com/braidlog/braid/protocol"

// earlier is what this member knows of what its earlier incarnations had accepted.
type earlier struct {
	// last is the last group of one of their lanes that was found in the log.
	last protocol.Index
	// over: the state machine has applied all that they had accepted. It stays so.
	over bool
}

// note takes in an entry of the log.
func (o *earlier) note(own protocol.Lane, e *protocol.Entry) {
	if r, ok := e.Range(); ok && r.Lane.Member == own.Member && r.Lane != own {
		o.last = max(o.last, e.Index)
	}
}

// Applied takes in how far the state machine has applied the log. What an earlier incarnation had accepted is on this
// member's disk: in its lane, or in the log.
func (l *Lanes) Applied(to protocol.Index) {
	if l != nil && to >= l.earlier.last && l.olderLane() == nil {
		l.earlier.over = true
	}
}

// Owes reports whether the state machine may not have applied all that earlier incarnations of this member had
// accepted.
func (l *Lanes) Owes() bool { return l != nil && !l.earlier.over }

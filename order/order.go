package order

import "github.com/braidlog/braid/protocol"

// Order merges instances into the global log. It is a deterministic function of the
// entries committed in each instance. Not safe for concurrent use.
type Order interface {
	// Add tells that entries are committed in an instance. They continue what was added
	// for this instance before; Add panics if they do not, since that would be a
	// protocol error that must not reach the state machine.
	Add(instance protocol.InstanceID, entries []protocol.Entry)
	// Next appends to out the entries whose place in the global log is now known, in
	// the order of the global log, and forgets them.
	Next(out []Placed) []Placed
	// Cursor tells how far Next has come.
	Cursor() Cursor
	// Check verifies the invariants.
	Check() error
}

// Placed is an entry with its place in the global log.
type Placed struct {
	Instance protocol.InstanceID
	// First is the position of the entry's first command; the entry covers
	// Entry.Width() positions from there.
	First protocol.Position
	Entry protocol.Entry
}

// Cursor is a cut through the global log: everything up to Position, which is everything
// up to one point in each instance's log. Order and state machine resume from it.
type Cursor struct {
	Position protocol.Position `json:"position"`
	Points   []Point           `json:"points"`
}

// Point is the last consumed entry of one instance.
type Point struct {
	Instance protocol.InstanceID `json:"instance"`
	Index    protocol.Index      `json:"index"`
	Term     protocol.Term       `json:"term"`
}

// Clone returns a copy that shares nothing with c.
func (c Cursor) Clone() Cursor {
	c.Points = append([]Point(nil), c.Points...)
	return c
}

// Point returns the cursor's point in an instance; the zero Point if it has none.
func (c *Cursor) Point(instance protocol.InstanceID) Point {
	for _, p := range c.Points {
		if p.Instance == instance {
			return p
		}
	}
	return Point{Instance: instance}
}

package member

import (
	"io"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// SnapshotOffer is what a member says of a snapshot before it sends it to another one.
type SnapshotOffer struct {
	// Instance is the instance whose leader sends it, in this term; 0 if no instance asked. After
	// is the index after which the sender has that instance's log, 0 if it did not say.
	Instance protocol.InstanceID `json:"instance"`
	Term     protocol.Term       `json:"term"`
	After    protocol.Index      `json:"after,omitempty"`
	Meta
	// HasState is true: no one sends a snapshot without a state.
	HasState bool `json:"has_state"`
}

// Check reports why no member would send this.
func (o *SnapshotOffer) Check() error {
	switch {
	case len(o.Cursor.Points) == 0 || len(o.Cursor.Points) != 1+len(o.Others):
		return &protocol.CorruptError{What: "snapshot stream", Detail: "no instances"}
	case !o.HasState:
		return &protocol.CorruptError{What: "snapshot stream", Detail: "no state"}
	}
	return nil
}

// ReceivedSnapshot is a snapshot whose state is to be read.
type ReceivedSnapshot interface {
	io.ReadCloser
	Meta() Meta
	// Verify reads the rest, and reports whether all of it is what was written.
	Verify() error
}

// Saved is where a member's durable snapshots stand: the newest, and the oldest. A start goes back to the oldest if the
// newer ones are damaged. The oldest is the zero value if it was written before this incarnation.
type Saved struct{ Newest, Oldest order.Cursor }

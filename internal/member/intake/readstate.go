package intake

import (
	"slices"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// ReadState is how far a state is that is to serve reads.
type ReadState struct {
	// At is its place in the global log. Shape are the instances that are active there, ascending.
	At    *order.Cursor
	Shape []protocol.InstanceID
	// Added is how much of each of them is in the order. All that follows from it is applied.
	Added []protocol.Index
}

// added is how much of an instance is in the order; 0 if it is not active.
func (s *ReadState) added(instance protocol.InstanceID) protocol.Index {
	if i := slices.Index(s.Shape, instance); i >= 0 {
		return s.Added[i]
	}
	return 0
}

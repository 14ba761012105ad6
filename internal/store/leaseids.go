package store

import "sync/atomic"

// leaseIDs makes ids of leases for clients that leave them to the server. They follow each other from a random one on,
// so those of another member, or of another run of this one, are almost certainly different ones; if not, the grant
// fails. The database keeps leases in the order of their ids: with a random id for each, a commit would write most of
// its pages.
type leaseIDs struct{ last atomic.Int64 }

// begin draws the first id. The upper half of the positive ids is left for counting.
func (l *leaseIDs) begin() { l.last.Store(int64(random() >> 2)) }

// next returns a positive id.
func (l *leaseIDs) next() int64 { return l.last.Add(1) }

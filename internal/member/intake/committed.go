package intake

import (
	"github.com/braidlog/braid/protocol"
)

// CommittedEntries is committed entries on their way to the Applier.
type CommittedEntries struct {
	Instance protocol.InstanceID
	Entries  []protocol.Entry
	Own      []*Batch
	// Stored tells up to where the member's disk has the log. An entry may be committed by others
	// before this disk has it. nil: nothing is known to be on the disk.
	Stored func() protocol.Index
}

// EntryCost is what an entry counts for: its bytes, and what it takes in memory. It is for what is
// kept for others. Snapshots are due by bytes alone.
func EntryCost(e *protocol.Entry) int64 { return int64(e.Bytes()) + 256 }

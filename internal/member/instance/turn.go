package instance

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Happened is what a turn takes in. The driver reads it once, before the turn, in the order of the fields: news of
// bodies cover all that is applied when they are read.
type Happened struct {
	// Durable is the last step of which everything is durable.
	Durable uint64
	Inputs  []protocol.Input // in the order in which they came
	Jobs    []func()         // other things to do in the turn

	// Active reports whether the instance is one of those whose logs are merged now. If it is, Added is its last entry
	// that is in the order, and Applied the last that is applied.
	Active         bool
	Added, Applied protocol.Index
	// AppliedBytes is how much was applied since the start, as LogKeeper counts.
	AppliedBytes int64
	// Saved is the places of the durable snapshots.
	Saved *member.Saved

	// Tick says that it is time for a tick, with this random number. Only then At, Configs, Expired and Unnamed count.
	Tick   bool
	Random uint64
	// At is what this member has applied, Configs the memberships then.
	At      order.Cursor
	Configs []protocol.Config
	// Expired are batches that no instance took in time, and Unnamed are the changes that name in the membership whose
	// log each member has. Only the first instance's are used. Unnamed follows from the instance's published status.
	Expired []*intake.Batch
	Unnamed []protocol.Change

	// BodyNews says that Bodies is to be taken in.
	BodyNews bool
	Bodies   protocol.Bodies
}

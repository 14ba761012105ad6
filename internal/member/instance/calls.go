package instance

import (
	"time"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Calls is what an instance asks during a turn, because the answers change within it. No call waits or decides.
type Calls struct {
	Now      func() time.Duration
	Siblings func() Siblings // those that are active now
	Source   Source
	Rounds   Rounds
}

// Source is the proposals and reads of this member that wait for an instance. All instances take from it at the same
// time.
type Source interface {
	// Waiting and TakeBatch are of the member's [intake.Proposals].
	Waiting() (bytes int, full bool, path protocol.Path)
	TakeBatch() *intake.Batch
	// NoteLoad publishes how much work the instance has. Which instance takes the next batch is decided by the loads of
	// all, so it is called after each batch.
	NoteLoad(load Load)
	// TakeReads takes out the groups of reads for which the instance is to find its read index. They are valid until
	// the next call. A group that has ended within the turn lets the next one begin.
	TakeReads() []*intake.ReadGroup
}

// Rounds is the member's [WantedRounds]. All instances use it at the same time.
type Rounds interface {
	Risen() uint64
	// ReportRounds passes the instance's rounds on (WantedRounds.Set), and returns the slot up to which other instances
	// wait for this one. Wanted returns that slot alone.
	ReportRounds(t InstanceRounds, wake []protocol.InstanceID) (want order.Slot, wakes []protocol.InstanceID)
	Wanted() order.Slot
}

// Siblings are the instances that are active on a member at one moment, ascending. There is at least one, and the first
// is never retired.
type Siblings interface {
	IDs() []protocol.InstanceID
	Load(i int) Load
	Status(i int) *protocol.Status
	// Wake makes an instance begin a turn.
	Wake(i int)
}

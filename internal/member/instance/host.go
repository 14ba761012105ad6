package instance

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Host is what an instance asks of the member that hosts it. No call decides anything or waits.
// Its results arrive in a later turn.
type Host interface {
	Now() time.Duration
	// Siblings are the instances that are in force now.
	Siblings() Siblings
	// Input makes a later turn take in an input.
	Input(in protocol.Input)
	// Publish makes known how the instance stands. NoteLoad makes known how much work of this
	// member's it has, NoteWeave how it stands in the weaving.
	Publish(st *protocol.Status)
	NoteLoad(load Load)
	NoteWeave(st *WeaveStatus)
	// Relink makes the links follow the memberships. changed says that a membership, the leader or
	// the term may have changed. Otherwise it is only time to end links that were kept for a
	// while.
	Relink(changed bool)
	// Fail stops the member. Condemn notes on disk that the member may not start again, and stops
	// it.
	Fail(err error)
	Condemn(f *protocol.Forgot)

	HostWork
	HostLinks
	HostDisk
	HostApply
	HostBodies
}

// HostWork is this member's proposals and reads, and what its instances want of each other. All
// instances share it.
type HostWork interface {
	// Waiting and TakeBatch are of the member's [intake.Proposals].
	Waiting() (bytes int, full bool)
	TakeBatch() *intake.Batch
	// TakeReads takes out the groups of reads for which the instance is to find its read index, until the next call.
	TakeReads() []*intake.ReadGroup
	// Risen, Weave and Wanted are of the member's [Weaver].
	Risen() uint64
	Weave(t InstanceRounds, wake []protocol.InstanceID) (want order.Slot, wakes []protocol.InstanceID)
	Wanted() order.Slot
	// Refused says that a change for which somebody asked was refused.
	Refused(r protocol.Rejection)
}

// HostLinks is the way to other members.
type HostLinks interface {
	// Frame lists a message's bytes, with payloads and bodies read from the disk.
	Frame(m *protocol.Message) ([][]byte, error)
	// Transmit puts bytes on a stream to a member. It is false if they certainly do not arrive.
	Transmit(to protocol.MemberID, stream uint32, parts [][]byte) bool
	// Unreadable notes that a message could not be framed, and what is done about it.
	Unreadable(m *protocol.Message, err error, remedy Remedy)
	// SendSnapshot is of the member's [snapshot.StateExchange], as Ask.
	SendSnapshot(to protocol.MemberID, o *member.SnapshotOffer)
	// AskMissing asks a member for a snapshot because of an instance that may be retired.
	AskMissing(to protocol.MemberID)
}

// HostDisk is the log, which all instances share.
type HostDisk interface {
	// Submit hands over the records of all steps up to seq. When they are durable a turn is told.
	Submit(records []wal.Record, seq uint64)
	// CutLog gives up the log up to an index.
	CutLog(at protocol.Index)
	// Harmed notes that the record of an entry is damaged.
	Harmed(err *member.LoadError)
}

// HostApply is what applies the entries that instances commit.
type HostApply interface {
	// At is all that is applied, and the memberships.
	At() (order.Cursor, []protocol.Config)
	Install(base *protocol.Base)
	Commit(c intake.CommittedEntries)
	// ReadPoint and FailRead are of the member's [intake.ReadGroups].
	ReadPoint(g *intake.ReadGroup, index protocol.Index)
	FailRead(g *intake.ReadGroup, err error)
	// WantSnapshot asks for a new snapshot.
	WantSnapshot()
	// TendState is of the member's [snapshot.StateExchange], as Tend.
	TendState(st *protocol.Status)
}

// HostBodies is what keeps bodies.
type HostBodies interface {
	BodiesInstalling(index protocol.Index)
	BodiesCommitted(entries []protocol.Entry)
	BodiesCompacted(index protocol.Index)
	Want(refs []protocol.BodyRef)
}

// Siblings are the instances in force on a member at one moment, ascending. There is at least one,
// and the first is never retired.
type Siblings interface {
	IDs() []protocol.InstanceID
	Load(i int) Load
	Status(i int) *protocol.Status
	// Wake makes an instance begin a turn. Tell makes it take in an input.
	Wake(i int)
	Tell(i int, in protocol.Input)
}

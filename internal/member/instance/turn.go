package instance

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Happened is what a turn takes in. The driver reads it once, before the turn, in the order of the fields: news of
// bodies cover all that is applied when they are read.
type Happened struct {
	// Durable is the last step of which everything is durable.
	Durable uint64
	Inputs  []protocol.Input // in the order in which they came
	Jobs    []func()         // other things to do in the turn

	// Active is false once this member has applied the end of the instance, which is retired then. Before, Added is its
	// last entry that is in the order, and Applied the last that is applied.
	Active         bool
	Added, Applied protocol.Index
	// AppliedBytes is how much was applied since the start, as LogKeeper counts.
	AppliedBytes int64
	// Saved is the places of the durable snapshots.
	Saved *member.Saved

	// Tick says that it is time for a tick, with this random number. Only then the fields up to Unnamed count.
	Tick   bool
	Random uint64
	// At is what this member has applied, Configs the memberships then.
	At      order.Cursor
	Configs []protocol.Config
	// Drained are the other members that are to lead nothing.
	Drained []protocol.MemberID
	// Expired are batches that no instance took in time. If Named, Unnamed are the changes that name in the membership
	// whose log each member has, as they follow from the published status; see [Hosted.NamesDue]. Only the first
	// instance's are used.
	Expired []*intake.Batch
	Named   bool
	Unnamed []protocol.Change

	// BodyNews says that Bodies is to be taken in.
	BodyNews bool
	Bodies   protocol.Bodies
}

// Turn is what a driver carries out in the order of the fields, before it calls [Hosted.Next] again. A field that is
// zero says nothing. What another part of the member finds while this is carried out is an input of a later turn.
// Slices are valid until then, except those of Persist and Commit, which others may keep.
type Turn struct {
	// AskMissing is a member to be asked for a snapshot, because the instance may be retired.
	AskMissing protocol.MemberID
	// Behind is a member that takes part in the instance, which a seal has ended: it is to be offered a snapshot.
	Behind protocol.MemberID

	// Install is the base of a snapshot that takes the state machine's place, before what is committed in the log is
	// cut under it.
	Install *protocol.Base
	// Forgot is noted on disk before the leader is answered, because the leader does not repeat it. Then the member
	// stops, as it does with Stop.
	Forgot *protocol.Forgot
	Stop   error

	// Send comes before Persist: the followers and this member's disk work in parallel. Everything that the messages
	// assert is durable. A [Sender] sends them.
	Send []*protocol.Message
	// Persist is the records of all steps up to Seq. When these are durable, a later turn takes in Durable. Seq may
	// rise without records.
	Seq     uint64
	Persist []wal.Record

	Accepted []*intake.Batch // to be told that they are accepted, before others settle them
	// Commit goes to what applies, and its bodies to what keeps bodies before that.
	Commit intake.CommittedEntries
	Failed []FailedBatch
	// ReadIndexes are read indexes of groups. FailedReads are groups that get none in time.
	ReadIndexes []ReadIndex
	FailedReads []*intake.ReadGroup
	Want        []protocol.BodyRef   // bodies to be gathered
	Refused     []protocol.Rejection // changes that were refused
	// Suspect is a leader that has not been heard for too long. The other instances take that in.
	Suspect   protocol.MemberID
	Snapshots []SnapshotRequest

	// Merge and Status are how the instance stands now. Changed says that the membership, the leader or the term may be
	// others, so the links follow them.
	Merge   *MergeStatus
	Status  *protocol.Status
	Changed bool

	// Closed says that the instance is closed, and that the messages are sent that were said before: see
	// [Hosted.Close].
	Closed bool
	// Departed is why the member stops: the cluster continues without it.
	Departed error
	// Tend says that a tick of the first instance is over. What requests snapshots looks at Status, and links that
	// were kept for a while may end.
	Tend bool
	// WantSnapshot asks for a new snapshot.
	WantSnapshot bool
	// Cut is up to where the log and its bodies are given up.
	Cut protocol.Index
}

// ReadIndex is an instance's read index for a group.
type ReadIndex struct {
	Group *intake.ReadGroup
	Index protocol.Index
}

// SnapshotRequest is a snapshot that is to be sent to a member. It is answered by protocol.SnapshotSent.
type SnapshotRequest struct {
	To    protocol.MemberID
	Offer *member.SnapshotOffer
}

// reset empties the turn. Its own slices are used again.
func (t *Turn) reset() {
	clear(t.ReadIndexes)
	clear(t.FailedReads)
	clear(t.Snapshots)
	*t = Turn{ReadIndexes: t.ReadIndexes[:0], FailedReads: t.FailedReads[:0], Snapshots: t.Snapshots[:0]}
}

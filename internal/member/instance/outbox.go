package instance

import (
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Outbox collects what an instance wants over one or more steps. [Hosted] carries it out in this
// order: Install and Forgot, Send, Persist (up to Seq), then the rest. Then it calls Reset.
// Sending before writing lets the leader's disk and the followers work in parallel.
type Outbox struct {
	// Send may leave now: everything that these messages assert is durable.
	Send []*protocol.Message
	// Persist goes to the log. When it is durable, the owner steps Persisted{Seq}. Seq can rise
	// without records. Then everything persisted before is enough.
	Persist []wal.Record
	Seq     uint64
	// Install, if set, comes before Commit: the received snapshot with this base
	// replaces the state machine's state.
	Install *protocol.Base
	// Commit is committed entries. Own are this member's batches among them, in the same order. A
	// batch that was committed twice is listed where it was committed first.
	Commit []protocol.Entry
	Own    []*intake.Batch
	// Accepted are pending batches whose callers are to be told that they are accepted. This comes
	// before Commit: after it others may settle the same batches.
	Accepted []*intake.Batch
	// Reads are answers to Instance.Read. FailedReads are the contexts of reads that were given
	// up.
	Reads       []protocol.ReadIndex
	FailedReads []uint64
	// Failed are batches that were given up. Their commands must be told Err.
	Failed []FailedBatch
	// Refused are changes that were refused.
	Refused []protocol.Rejection
	// Want are bodies that the core needs whole. Gather each, then step BodyMade.
	Want []protocol.BodyRef
	// Snapshots are members that need a snapshot. Answer each by SnapshotSent.
	Snapshots []protocol.MemberID
	// Forgot: the member lost what it had promised to keep, and must stop.
	Forgot *protocol.Forgot
	// Stop is why the member must stop; nil: it need not. It is a [*protocol.DivergedError] or a
	// [*protocol.ProfileError].
	Stop error
	// Suspect is a leader of which nothing was heard for too long; 0: none. The other instances on
	// this member are to be told.
	Suspect protocol.MemberID
	// Changed says that the core's Status has news.
	Changed bool
}

// FailedBatch is a batch that is given up and why.
type FailedBatch struct {
	Batch *intake.Batch
	Err   error
}

// Reset empties the outbox; Seq stays. The owner hands Commit, Own and Persist to others, so their
// memory is not used again.
func (o *Outbox) Reset() {
	clear(o.Send)
	clear(o.Failed)
	clear(o.Accepted)
	*o = Outbox{
		Send: o.Send[:0], Seq: o.Seq, Reads: o.Reads[:0], FailedReads: o.FailedReads[:0], Accepted: o.Accepted[:0],
		Failed: o.Failed[:0], Refused: o.Refused[:0], Want: o.Want[:0], Snapshots: o.Snapshots[:0],
	}
}

// Empty reports whether there is nothing to carry out.
func (o *Outbox) Empty() bool {
	return len(o.Send) == 0 && len(o.Persist) == 0 && o.Install == nil && len(o.Commit) == 0 && len(o.Reads) == 0 &&
		len(o.FailedReads) == 0 && len(o.Failed) == 0 && len(o.Accepted) == 0 && len(o.Refused) == 0 && len(o.Want) == 0 &&
		len(o.Snapshots) == 0 && o.Forgot == nil && o.Stop == nil && o.Suspect == 0 && !o.Changed
}

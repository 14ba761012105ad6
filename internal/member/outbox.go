package member

import (
	"fmt"

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
	Own    []*Batch
	// Accepted are pending batches whose callers are to be told that they are accepted. This comes
	// before Commit: after it others may settle the same batches.
	Accepted []*Batch
	// Reads are answers to Instance.Read. FailedReads are the contexts of reads that were given
	// up.
	Reads       []protocol.ReadPoint
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
	// Diverged: another member's log differs where this one is decided, and the member must stop.
	Diverged *protocol.DivergedError
	// Suspect is a leader of which nothing was heard for too long; 0: none. The other instances on
	// this member are to be told.
	Suspect protocol.MemberID
	// Changed says that the core's Status has news.
	Changed bool
}

// FailedBatch is a batch that is given up and why.
type FailedBatch struct {
	Batch *Batch
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
		len(o.FailedReads) == 0 && len(o.Failed) == 0 && len(o.Accepted) == 0 && len(o.Refused) == 0 && len(o.Want) == 0 && len(o.Snapshots) == 0 && o.Forgot == nil && o.Diverged == nil && o.Suspect == 0 && !o.Changed
}

// walRecord turns a core's record into the log's. The entry's bytes are those that are sent, not a
// copy of them. An entry of whose body nothing is held says so on disk too. If the disk says
// nothing of a body, it was lost.
func walRecord(instance protocol.InstanceID, r *protocol.Record) wal.Record {
	w := wal.Record{Instance: uint32(instance)}
	switch r.Kind {
	case protocol.RecordEntry:
		w.Kind, w.Index = wal.KindEntry, uint64(r.Entry.Index)
		w.Parts = [2][]byte{r.Entry.Head(), r.Entry.Payload}
		if r.Entry.BodySize > 0 {
			w.Body = bodyOf(instance, &r.Entry)
		}
	case protocol.RecordBody:
		w.Kind, w.Index, w.Body = wal.KindBody, uint64(r.Entry.Index), bodyOf(instance, &r.Entry)
	case protocol.RecordState:
		w.Kind, w.Parts[0] = wal.KindState, encodeState(r.State)
	case protocol.RecordBase:
		w.Kind, w.Index, w.Parts[0] = wal.KindBase, uint64(r.Base.Index), encodeBase(*r.Base)
	case protocol.RecordCell:
		w.Kind, w.Index, w.Parts[0] = wal.KindCell, r.Cell.Number, r.Cell.Data
		if r.Entry.Form != protocol.FormNone {
			w.Body = bodyOf(instance, &r.Entry)
		}
	case protocol.RecordDrop:
		w.Kind, w.Index = wal.KindDrop, r.Cell.Number
	}
	return w
}

func bodyOf(instance protocol.InstanceID, e *protocol.Entry) *wal.Body {
	if len(e.Body) != e.BodyLen() {
		panic(fmt.Sprintf("member: %d bytes as %s of the body of entry %d, want %d", len(e.Body), e.Form, e.Index, e.BodyLen()))
	}
	return BodyRecord(e.Ref(instance), e.Form, e.Body).Body
}

// CommittedEntries is committed entries on their way to the Applier.
type CommittedEntries struct {
	Instance protocol.InstanceID
	Entries  []protocol.Entry
	Own      []*Batch
	// Stored tells up to where the member's disk has the log. An entry may be committed by others
	// before this disk has it. nil: nothing is known to be on the disk.
	Stored func() protocol.Index
}

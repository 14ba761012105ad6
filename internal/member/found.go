package member

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Loader makes an entry's payload resident: it reads it from where this member keeps it.
type Loader func(instance protocol.InstanceID, e *protocol.Entry) error

// InstanceLog is what Recover read of an instance.
type InstanceLog struct {
	Instance  protocol.InstanceID
	Recovered *protocol.Recovered
	// Accepted are the entries that its cells hold.
	Accepted []protocol.Entry
	// Place is where the instance stands among those that are active when it begins here, from 0 on.
	Place int
	// Closed: the member has begun the instances behind the seal that ends this one, and takes no part in it any more.
	Closed bool
	// First is the member that should lead the instance first, if it begins now, behind a seal, and this member has
	// written nothing of it; else 0.
	First protocol.MemberID
}

// Accept reads what the instance's cells hold. Cells of slots that are decided by now may still be
// there. They mean nothing.
func (l *InstanceLog) Accept(accepted func(protocol.Cell) (protocol.Entry, bool)) {
	last := l.Recovered.Base.Index
	if n := len(l.Recovered.Entries); n > 0 {
		last = l.Recovered.Entries[n-1].Index
	}
	for _, c := range l.Recovered.Cells {
		if e, ok := accepted(c); ok && e.Index > last {
			l.Accepted = append(l.Accepted, e)
		}
	}
}

// Leads returns the entries after an index up to the first gap: those of the log, then those of cells.
func (l *InstanceLog) Leads(after protocol.Index) []protocol.Entry {
	entries := l.Recovered.Entries
	for len(entries) > 0 && entries[0].Index <= after {
		entries = entries[1:]
	}
	n := 0
	for n < len(entries) && entries[n].Index == after+protocol.Index(n)+1 {
		n++
	}
	entries = entries[:n:n]
	for _, e := range slices.SortedFunc(slices.Values(l.Accepted), byIndex) {
		if e.Index == after+protocol.Index(len(entries))+1 {
			entries = append(entries, e)
		}
	}
	return entries
}

func byIndex(a, b protocol.Entry) int { return cmp.Compare(a.Index, b.Index) }

// Holds reports whether a body is of an entry in the log, or in a cell.
func (l *InstanceLog) Holds(ref *protocol.BodyRef) bool {
	return l.any(ref, func(e *protocol.Entry) bool {
		return e.Term == ref.Term && e.BodySize == ref.Size && e.BodyDigest == ref.Digest
	})
}

// Acknowledged reports whether the member acknowledged an entry with a body at the same index, which need not be
// this body.
func (l *InstanceLog) Acknowledged(ref *protocol.BodyRef) bool {
	return l.any(ref, func(e *protocol.Entry) bool { return e.BodySize > 0 && e.Index > l.Recovered.State.Commit })
}

// any reports whether one of the entries at a body's index is like that: the one in the log, or those in
// cells.
func (l *InstanceLog) any(ref *protocol.BodyRef, like func(*protocol.Entry) bool) bool {
	rec := l.Recovered
	switch {
	case ref.Instance != l.Instance || ref.Index <= rec.Base.Index:
		return false
	case ref.Index-rec.Base.Index <= protocol.Index(len(rec.Entries)):
		return like(&rec.Entries[ref.Index-rec.Base.Index-1])
	}
	return slices.ContainsFunc(l.Accepted, func(e protocol.Entry) bool { return e.Index == ref.Index && like(&e) })
}

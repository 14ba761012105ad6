package paxos

import (
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Ballot orders the proposals for a slot.
type Ballot = slots.Ballot

// MaxReads bounds the reads that wait at a member, at most 24 bytes each.
const MaxReads = 1 << 18

// Noop is an entry without a value, which has no slot yet.
func Noop() protocol.Entry {
	e := protocol.Entry{Kind: protocol.EntryNoop}
	e.SealPayload()
	return e
}

// Same reports whether two entries of a slot are the same value. Equal commands that two leaders proposed are
// different values, and so are empty values: each entry has the term in which it was first proposed.
func Same(a, b *protocol.Entry) bool {
	return a.Term == b.Term && a.Kind == b.Kind && a.ID == b.ID && a.Digest == b.Digest
}

// SlotKind reports whether an entry is of a kind that slots have.
func SlotKind(e *protocol.Entry) bool {
	switch e.Kind {
	case protocol.EntryNoop, protocol.EntryBatch, protocol.EntryConfig, protocol.EntryEmpty:
		return true
	}
	return false
}

// Bytes is the size of entries as it counts towards limits.
func Bytes(entries []protocol.Entry) (n int) {
	for i := range entries {
		n += entries[i].Bytes()
	}
	return n
}

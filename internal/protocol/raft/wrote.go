package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/protocol"
)

// Wrote reports whether Raft without lanes may have written a record.
func Wrote(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordCell, protocol.RecordDrop:
		return false
	case protocol.RecordEntry:
		switch r.Entry.Kind {
		case protocol.EntryGroup, protocol.EntryLane, protocol.EntryGeneration, protocol.EntryEmpty:
			return false
		}
		return wroteEntry(&r.Entry)
	}
	return true
}

// WroteLanes reports whether Raft with lanes may have written a record.
func WroteLanes(r *protocol.Record) bool {
	switch r.Kind {
	case protocol.RecordCell:
		return lane.Readable(r.Cell)
	case protocol.RecordEntry:
		return r.Entry.Kind != protocol.EntryEmpty && wroteEntry(&r.Entry)
	}
	return true
}

// wroteEntry: a log begins with the no-op of its first leader.
func wroteEntry(e *protocol.Entry) bool { return e.Index != 1 || e.Kind == protocol.EntryNoop }

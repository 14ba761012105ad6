package iss

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// hard tracks which part of the log and of the hard state was written.
type hard struct {
	// commit is the settled index that was last written, and savedAt when it was written.
	commit  protocol.Index
	savedAt time.Duration
	// logged is the last entry that was written to the log. What is decided after it is in cells of a quorum, and is
	// written with the next write. hurry: some of it is in no cell here.
	logged protocol.Index
	hurry  bool
	// stale are cells on the disk that are not needed any more.
	stale []uint64
}

func (s *ISS) record(r protocol.Record) { s.disk.Record(s.out, r) }

func (s *ISS) drop(cell uint64) {
	s.record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: cell}})
}

// flush writes decided entries to the log if something is written anyway, or if they cannot wait.
func (s *ISS) flush() {
	if s.disk.Wrote() || s.hard.hurry {
		s.logAll()
	}
}

// logAll writes decided entries to the log and drops their cells. On the disk an entry follows its cell, and
// precedes the record that drops the cell.
func (s *ISS) logAll() {
	h := &s.hard
	h.hurry = false
	for ; h.logged < s.log.Last(); h.logged++ {
		e := s.log.At(h.logged + 1)
		b := s.holder(e.Index)
		if b == nil {
			s.record(protocol.Record{Kind: protocol.RecordEntry, Entry: e})
			continue
		}
		s.record(protocol.Record{Kind: protocol.RecordEntry, Entry: b.acc.Unstored(e)})
		if _, voted := b.acc.Votes[e.Index]; voted {
			s.drop(uint64(e.Index))
			delete(b.acc.Votes, e.Index)
		}
	}
	for _, cell := range h.stale {
		s.drop(cell)
	}
	h.stale = nil
}

// holder is the segment of a slot in the current epoch; nil if it is in another one.
func (t *epochState) holder(i protocol.Index) *broadcast {
	if t.epoch == nil || i < t.epoch.First || i > t.epoch.Last {
		return nil
	}
	return t.parts[t.epoch.Place(i)]
}

// writeState writes the number of settled slots.
func (s *ISS) writeState() {
	s.logAll()
	s.hard.commit, s.hard.savedAt = s.settled(), s.now
	s.record(protocol.Record{Kind: protocol.RecordState,
		State: protocol.HardState{Term: protocol.Term(s.number()), Commit: s.hard.commit}})
}

func (s *ISS) stalled() bool {
	return s.disk.Stalled(s.now, protocol.StallTimeouts*s.cfg.ElectionTimeout)
}

func persisted(s *ISS, seq uint64) {
	if !s.disk.Completed(seq) {
		return
	}
	for _, b := range s.parts {
		b.persisted()
	}
}

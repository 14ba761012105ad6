package multipaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// hard tracks which part of the log and of the hard state was written.
type hard struct {
	// commit is the settled index that was last written, and savedAt when it was written.
	commit  protocol.Index
	savedAt time.Duration
	// logged is the last entry that was written to the log. What is decided after it is stored in cells, which is as
	// durable, and is written with the next write. hurry: some of it is in no cell, or has the members of the next
	// slots.
	logged protocol.Index
	hurry  bool
	// state is the number of the last write of a ballot of this member's own.
	state uint64
	// stale are the slots of cells that are on the disk although their entries are in the log.
	stale []protocol.Index
}

func (s *Paxos) record(r protocol.Record) { s.disk.Record(s.out, r) }

func (s *Paxos) drop(slot protocol.Index) {
	s.record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: uint64(slot)}})
}

// flush writes decided entries to the log if something is written anyway, or if they cannot wait.
func (s *Paxos) flush() {
	if s.disk.Wrote() || s.hard.hurry {
		s.logAll()
	}
}

// logAll writes decided entries to the log and drops their cells. On the disk an entry follows its cell, and
// precedes the record that drops the cell.
func (s *Paxos) logAll() {
	h := &s.hard
	h.hurry = false
	for ; h.logged < s.log.Last(); h.logged++ {
		e := s.log.At(h.logged + 1)
		_, voted := s.acc.Votes[e.Index]
		s.record(protocol.Record{Kind: protocol.RecordEntry, Entry: s.acc.Unstored(e)})
		if voted {
			s.drop(e.Index)
			delete(s.acc.Votes, e.Index)
		}
	}
	for _, slot := range h.stale {
		s.drop(slot)
	}
	h.stale = nil
}

// writeState writes the ballot and the number of settled slots.
func (s *Paxos) writeState() {
	s.logAll()
	s.hard.commit, s.hard.savedAt = s.settled(), s.now
	s.record(protocol.Record{Kind: protocol.RecordState,
		State: protocol.HardState{Term: protocol.Term(s.ballot), Commit: s.hard.commit}})
}

// promise promises a ballot, durably.
func (s *Paxos) promise(b paxos.Ballot) {
	s.ballot = b
	s.acc.Promise(b, s.log.Last())
	s.record(protocol.Record{Kind: protocol.RecordCell, Cell: s.acc.EncodePromise()})
	s.writeState()
}

// vote accepts an entry under the promised ballot.
func (s *Paxos) vote(e protocol.Entry) {
	stored := s.acc.Unstored(e)
	if e.BodySize > 0 {
		e.Form = protocol.FormWhole
	}
	s.acc.Accept(&e, s.log.Last())
	if e.Kind == protocol.EntryConfig && s.cfg.Mutant == MutantChangeEarly {
		s.conf, _ = protocol.DecodeConfig(e.Payload)
	}
	v := s.acc.Votes[e.Index]
	s.record(protocol.Record{Kind: protocol.RecordCell, Cell: v.Cell(), Entry: stored})
}

// stable is the last slot up to which this member's disk has everything: decided, or accepted under the promised
// ballot.
func (s *Paxos) stable() protocol.Index {
	switch d := &s.disk; {
	case d.Done >= d.Written:
		return s.acc.Reach
	case d.Durable.Under == s.acc.Promised:
		return d.Durable.Reach
	}
	return 0
}

func (s *Paxos) stalled() bool {
	return s.disk.Stalled(s.now, protocol.StallTimeouts*s.cfg.ElectionTimeout)
}

func persisted(s *Paxos, seq uint64) {
	if !s.disk.Completed(seq) || s.closed() {
		return
	}
	if s.prop.Phase == paxos.Preparing {
		s.tally()
	}
	if s.role == protocol.Leader {
		s.advance()
	}
	recordOwn(s)
}

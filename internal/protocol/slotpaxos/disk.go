package slotpaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// disk tracks this member's own disk.
type disk struct {
	slots.Disk
	// state is the number of the last write of one of this member's own ballots.
	state uint64
	// commit is the number of slots that the disk records as decided, and noted when it was written.
	commit protocol.Index
	noted  time.Duration
	// kept are messages of this member to itself that wait for writes, ascending in seq.
	kept []keptMessage
	// stale are the slots of cells that are on disk although their entries are in the log.
	stale []protocol.Index
}

type keptMessage struct {
	seq uint64
	m   *protocol.Message
}

// keep adds a message of this member to itself to its inbox when everything written so far is durable.
func (d *disk) keep(m *protocol.Message, inbox *[]*protocol.Message) {
	if d.Done >= d.Written {
		*inbox = append(*inbox, m)
		return
	}
	d.kept = append(d.kept, keptMessage{d.Written, m})
}

// stateDurable reports whether this member's ballot is on disk.
func (d *disk) stateDurable() bool { return d.Done >= d.state }

func (s *Paxos) record(r protocol.Record) {
	d := &s.disk
	d.Record(s.out, r)
	for _, slot := range d.stale {
		s.out.Persist = append(s.out.Persist,
			protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: uint64(slot)}})
	}
	d.stale = nil
}

// writeState writes the ballot and the number of decided slots.
func (s *Paxos) writeState() {
	s.disk.commit, s.disk.noted = s.settled(), s.now
	s.record(protocol.Record{Kind: protocol.RecordState,
		State: protocol.HardState{Term: protocol.Term(s.ballot), Commit: s.disk.commit}})
}

// persisted handles a completion, which may arrive late or twice.
func (s *Paxos) persisted(seq uint64) {
	d := &s.disk
	if !d.Completed(seq) {
		return
	}
	for len(d.kept) > 0 && d.kept[0].seq <= seq {
		s.inbox = append(s.inbox, d.kept[0].m)
		d.kept = d.kept[1:]
	}
}

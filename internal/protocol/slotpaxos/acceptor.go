package slotpaxos

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// cell has the promise and the accepted entry of this member, as an acceptor, in a slot. It is on disk before it is
// sent, and is dropped when the slot's entry is in the log. A cell with slot 0 is empty.
type cell struct {
	slot protocol.Index
	// promised: no entry is accepted under a lower ballot. accepted is the ballot of entry, 0 if
	// there is none. accepted ≤ promised; neither falls.
	promised, accepted Ballot
	entry              protocol.Entry
}

// encode returns the bytes of the cell on disk: two ballots, and the entry if there is one, as its head and payload.
// A body is stored next to it.
func (c *cell) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(c.promised))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.accepted))
	if c.accepted == 0 {
		return b
	}
	b = append(b, c.entry.Head()...)
	return append(b, c.entry.Payload...)
}

// decodeCell decodes what encode encoded.
func decodeCell(in protocol.Cell) (c cell, err error) {
	corrupt := func(detail string) (cell, error) {
		return cell{}, &protocol.CorruptError{What: "cell", Detail: fmt.Sprintf("slot %d: %s", in.Number, detail)}
	}
	b := bytes.Clone(in.Data)
	if len(b) < 16 {
		return corrupt(fmt.Sprintf("%d bytes", len(b)))
	}
	c.slot = protocol.Index(in.Number)
	c.promised, c.accepted = Ballot(binary.LittleEndian.Uint64(b)), Ballot(binary.LittleEndian.Uint64(b[8:]))
	if c.accepted == 0 {
		return c, nil
	}
	e, rest, err := protocol.DecodeEntry(b[16:], true)
	switch {
	case err != nil:
		return corrupt(err.Error())
	case e.Index != c.slot || len(rest) > 0:
		return corrupt(fmt.Sprintf("entry %d, and %d bytes after it", e.Index, len(rest)))
	}
	if e.BodySize > 0 {
		e.Form = protocol.FormWhole
	}
	c.entry = e
	return c, nil
}

// Accepted is the entry that a cell holds, whose body the disk must hold too; false if there is none.
func Accepted(c protocol.Cell) (protocol.Entry, bool) {
	known, err := decodeCell(c)
	return known.entry, err == nil && known.accepted != 0
}

// loadCells loads the cells from the disk. Cells of decided slots were about to be dropped.
func (s *Paxos) loadCells(cells []protocol.Cell) error {
	for _, in := range cells {
		c, err := decodeCell(in)
		switch {
		case err != nil:
			return err
		case c.slot <= s.log.Last():
			s.disk.stale = append(s.disk.stale, c.slot)
		case c.slot > s.log.Last()+1:
			return &protocol.CorruptError{What: "cell",
				Detail: fmt.Sprintf("slot %d, but the log ends at %d", c.slot, s.log.Last())}
		default:
			s.cell = c
			s.ballot = max(s.ballot, c.promised)
		}
	}
	return nil
}

// furthest is the last slot that is decided or accepted here.
func (s *Paxos) furthest() protocol.Index {
	if s.cell.accepted != 0 {
		return s.cell.slot
	}
	return s.log.Last()
}

// votes reports whether this member can vote on a slot: it knows all slots before it. A request about a decided slot
// is answered with the decision.
func (s *Paxos) votes(m *protocol.Message, slot protocol.Index) bool {
	if slot <= s.log.Last() {
		s.sendDecided(m.From, slot-1)
	}
	return slot == s.log.Last()+1 // if the slot is later, receive asks the sender for the missing ones
}

// onPrepare is phase 1 at an acceptor.
func onPrepare(s *Paxos, m *protocol.Message, p Part) {
	if !s.votes(m, p.Slot) {
		return
	}
	if p.Ballot < s.cell.promised {
		s.send(m.From, MsgRefused, p)
		return
	}
	s.resetElectionTimer() // another member is proposing
	if p.Ballot > s.cell.promised {
		s.cell.slot, s.cell.promised = p.Slot, p.Ballot
		s.writeCell(protocol.Entry{})
	}
	answer := Part{Slot: p.Slot, Ballot: p.Ballot, Lacking: s.bodies.Missing}
	if s.cell.accepted == 0 || s.cfg.Mutant == MutantPromiseForgets {
		s.answer(m.From, MsgPromise, answer)
		return
	}
	answer.Accepted = s.cell.accepted
	s.answer(m.From, MsgPromise, answer).Entries = []protocol.Entry{s.cell.entry}
}

// onAccept is phase 2 at an acceptor.
func onAccept(s *Paxos, m *protocol.Message, p Part) {
	s.follow(m.From, p.Ballot)
	if !s.votes(m, p.Slot) || len(m.Entries) != 1 || m.Entries[0].Index != p.Slot || !s.whole(&m.Entries[0]) ||
		!slots.Readable(&m.Entries[0]) {
		return
	}
	if p.Ballot < s.cell.promised && s.cfg.Mutant != MutantAcceptBelowPromise {
		s.send(m.From, MsgRefused, p)
		return
	}
	if p.Ballot != s.cell.accepted {
		stored := s.unstored(m.Entries[0])
		s.cell = cell{slot: p.Slot, promised: max(p.Ballot, s.cell.promised), accepted: p.Ballot, entry: m.Entries[0]}
		s.writeCell(stored)
	}
	s.answer(m.From, MsgAccepted, p)
	if p.Early {
		s.notifyOrigins(m.From, p)
	}
}

// answer sends an answer about the cell when the cell is durable.
func (s *Paxos) answer(to protocol.MemberID, t protocol.MessageType, p Part) *protocol.Message {
	if s.cfg.Mutant == MutantAnswerEarly {
		return s.send(to, t, p)
	}
	return s.release(to, t, p)
}

// writeCell writes the cell, and before it the body of an entry if the entry has one.
func (s *Paxos) writeCell(body protocol.Entry) {
	cell := protocol.Cell{Number: uint64(s.cell.slot), Data: s.cell.encode()}
	s.record(protocol.Record{Kind: protocol.RecordCell, Cell: cell, Entry: body})
}

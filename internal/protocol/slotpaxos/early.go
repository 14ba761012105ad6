package slotpaxos

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// The origin of a command in ModeAccepted need not wait until it has learned the slot and applied the command.
// Acceptors tell the origin, as they tell the proposer, that they have accepted the entry. An entry that a quorum has
// accepted in a slot under one ballot is decided, and will be in the log of all members. If one of these messages is
// lost or late, or another member completes the slot, the answer comes when the slot is learned (see learn), or when
// the command is applied.

// held is the set of members that have accepted one entry in the slot after the log's last, under a ballot.
type held struct {
	slot   protocol.Index
	ballot Ballot
	by     []protocol.MemberID // without duplicates
}

// notifyOrigins tells the origins of what this member accepted, which may be this member. The proposer gets the
// answer anyway.
func (s *Paxos) notifyOrigins(proposer protocol.MemberID, p Part) {
	told := []protocol.MemberID{proposer}
	for _, b := range batchesOf(&s.cell.entry) {
		if id := b.ID.Session.Member; !slices.Contains(told, id) && s.conf.Find(id) != nil {
			told = append(told, id)
			s.answer(id, MsgHeld, Part{Slot: p.Slot, Ballot: p.Ballot})
		}
	}
}

func onHeld(s *Paxos, m *protocol.Message, p Part) {
	h := &s.held
	if p.Slot != s.log.Last()+1 || p.Slot == h.slot && p.Ballot < h.ballot {
		return // the slot is learned already, or its voters are not known here
	}
	if p.Slot != h.slot || p.Ballot != h.ballot {
		*h = held{slot: p.Slot, ballot: p.Ballot}
	}
	if !slices.Contains(h.by, m.From) {
		h.by = append(h.by, m.From)
	}
	if c := &s.cell; c.slot == h.slot && c.accepted == h.ballot &&
		(s.majority(h.by) || s.cfg.Mutant == MutantAcceptedByOne) {
		s.accepted(&c.entry)
	}
}

// accepted reports which of this member's proposals are in a decided entry.
func (s *Paxos) accepted(e *protocol.Entry) {
	for _, b := range batchesOf(e) {
		if b.ID.Session.Member == s.cfg.Self {
			s.out.Accepted = append(s.out.Accepted, b.ID)
		}
	}
}

// batchesOf lists the batches of an entry, as far as they can be read.
func batchesOf(e *protocol.Entry) []protocol.Entry {
	switch e.Kind {
	case protocol.EntryBatch:
		return []protocol.Entry{*e}
	case protocol.EntryGroup:
		batches, _ := e.Batches(nil)
		return batches
	}
	return nil
}

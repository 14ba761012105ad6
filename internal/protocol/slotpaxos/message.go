package slotpaxos

import (
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Ballot orders proposals for a slot.
type Ballot = slots.Ballot

// The messages. In all of them Term is the highest ballot that the sender knows, and Commit the last slot that it
// knows to be decided. A member that knows fewer slots asks for them.
const (
	MsgPrepare  = protocol.FirstOwnType + iota // phase 1: Slot, Ballot
	MsgPromise                                 // Slot, Ballot; Accepted and an entry if there is one
	MsgAccept                                  // phase 2: Slot, Ballot, an entry
	MsgAccepted                                // Slot, Ballot
	MsgRefused                                 // Slot, Ballot: a higher ballot was promised
	MsgDecided                                 // Slot, Ballot: what was accepted there is decided
	MsgAsk                                     // for the slots after Commit
	MsgTell                                    // decided entries, from any slot on
	// a leader's. Slot: where the receiver promised, or accepted (Accepted), last
	MsgHeartbeat
	MsgAlive          // the answer. Slot: the last one that is decided or accepted at the sender
	MsgPropose        // entries for the leader
	MsgProposeRefused // ID, Reason
	MsgRead           // a reader's question number Context
	MsgReadAnswer     // Slot: the last one that is decided or accepted at the sender
	MsgLead           // stand for election at once
	MsgHeld           // Slot, Ballot: what the sender accepted, for the origin of the proposal
)

// Codec encodes and decodes these messages.
var Codec = &protocol.Codec{
	Types: []protocol.Traits{
		{Name: "Prepare"}, {Name: "Promise"},
		{Name: "Accept", Brings: protocol.BringsLog}, {Name: "Accepted"}, {Name: "Refused"},
		{Name: "Decided"}, {Name: "Ask"}, {Name: "Tell", Brings: protocol.BringsLog},
		{Name: "Heartbeat", Delivery: protocol.BothWays}, {Name: "Alive", Delivery: protocol.SameWay},
		{Name: "Propose", Brings: protocol.BringsProposals}, {Name: "ProposeRefused"},
		{Name: "Read", Delivery: protocol.Urgent}, {Name: "ReadAnswer", Delivery: protocol.Urgent},
		{Name: "Lead", Delivery: protocol.Urgent}, {Name: "Held"},
	},
	Decode: decode, Describe: describe, Claims: claims,
}

// Part has the fields of these messages beyond the head that all protocols' messages have. Which fields mean something
// depends on the type; unused ones are zero.
type Part struct {
	Slot     protocol.Index
	Ballot   Ballot
	Accepted Ballot // Promise: of the entry; 0: nothing was accepted
	Chain    uint64 // Heartbeat: of the sender's log
	Force    bool   // Prepare: the leader transfers leadership
	Lacking  bool   // Promise, Alive: bodies of decided entries are missing here
	Early    bool   // Propose, Accept: the origins of the entries are told when they are accepted
	// ProposeRefused: the id of its first command, and the reason.
	ID     protocol.ProposalID
	Reason protocol.Reason
}

const partSize = 7*8 + 2

// Append implements protocol.Part.
func (p *Part) Append(dst []byte) []byte {
	dst = slots.AppendNumbers(dst,
		uint64(p.Slot), uint64(p.Ballot), uint64(p.Accepted),
		uint64(p.ID.Session.Member), p.ID.Session.Incarnation, p.ID.Seq, p.Chain,
	)
	return append(dst, slots.Flags(p.Force, p.Lacking, p.Early), byte(p.Reason))
}

// decode is the codec's. A message and its part are one piece of memory.
func decode(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	if len(b) != partSize {
		return nil, slots.CorruptPart(t, b)
	}
	m := &struct {
		protocol.Message
		part Part
	}{}
	u := func(i int) uint64 { return slots.Number(b, i) }
	m.part = Part{
		Slot: protocol.Index(u(0)), Ballot: Ballot(u(1)), Accepted: Ballot(u(2)),
		ID:    protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(u(3)), Incarnation: u(4)}, Seq: u(5)},
		Chain: u(6), Force: slots.Flag(b[56], 0), Lacking: slots.Flag(b[56], 1), Early: slots.Flag(b[56], 2),
		Reason: protocol.Reason(b[57]),
	}
	m.Part = &m.part
	return &m.Message, nil
}

// describe returns the contents of a message for logs and scripts.
func describe(m *protocol.Message) string {
	p := partOf(m)
	var s slots.Words
	s.Add(p.Slot != 0, "slot %d", p.Slot)
	s.Add(p.Ballot != 0, "ballot %s", p.Ballot)
	s.Add(p.Accepted != 0, "accepted %s", p.Accepted)
	s.Add(p.Force, "forced")
	s.Add(p.Lacking, "lacking")
	s.Add(p.Early, "early")
	s.Add(p.Reason != protocol.ReasonNone, "%s", p.Reason)
	return s.String()
}

// claims returns what must hold if a member sends a message, for the simulator's judges.
func claims(m *protocol.Message) (c protocol.Claims) {
	switch p := partOf(m); m.Type {
	case MsgPrepare, MsgAccept:
		c.Term = true // it is the sender's ballot
	case MsgHeartbeat:
		c.Acked = max(p.Slot, 1) - 1 // a member that promises or accepts in a slot has the log up to there
	case MsgLead:
		c.Moves = true
	}
	return c
}

func partOf(m *protocol.Message) Part { return slots.PartOf[Part](m) }

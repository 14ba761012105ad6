package multipaxos

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// The messages. In all of them Commit is the last slot up to which the sender knows everything to be decided. Term
// is the highest ballot that the sender knows.
const (
	// A question whether the receiver would promise. Slot: the last one that is decided or accepted at the sender.
	MsgProbe = protocol.FirstOwnType + iota
	// The answer, which may be no.
	MsgProbed
	// Phase 1: Ballot, for all slots from Slot on.
	MsgPrepare
	// Ballot: the sender's votes and decisions in the slots from Slot to Hint; More: there are others.
	MsgPromise
	// Phase 2: Ballot, entries. Those up to Commit are decided.
	MsgAccept
	// Ballot. Slot: everything up to it is decided, or accepted under the ballot.
	MsgAccepted
	// Ballot: a higher one, which the sender has promised.
	MsgRefused
	// From a leader. Slot: what the receiver acknowledged; Promised: it has promised the ballot.
	MsgHeartbeat
	// The answer: as Accepted, of the disk; Hint: of the memory; Logged.
	MsgAlive
	// Entries for the leader.
	MsgPropose
	// ID, Reason.
	MsgProposeRefused
	// A read for the leader. Round: the sender's incarnation.
	MsgRead
	// Slot: the read index; or Reason.
	MsgReadAnswer
	// A request to stand for election at once.
	MsgLead
	// A request for the slots after Commit.
	MsgAsk
	// Decided entries.
	MsgTell
	// An Accept to be forwarded to Members. Context: the last slot; 0: no answer.
	MsgRelay
	// An Accept of the leader in Members, forwarded by a relay, to which the answer goes. Context: as in Relay.
	MsgRelayed
	// Ballot, Held: what members of a group have accepted.
	MsgGathered
)

// Codec has the types of these messages and their encoding.
var Codec = &protocol.Codec{
	Types: []protocol.Traits{
		{Name: "Probe", Delivery: protocol.Urgent}, {Name: "Probed", Delivery: protocol.Urgent},
		{Name: "Prepare"}, {Name: "Promise"},
		{Name: "Accept", Brings: protocol.BringsLog}, {Name: "Accepted"}, {Name: "Refused"},
		{Name: "Heartbeat", Delivery: protocol.BothWays}, {Name: "Alive", Delivery: protocol.SameWay},
		{Name: "Propose", Brings: protocol.BringsProposals}, {Name: "ProposeRefused"},
		{Name: "Read", Delivery: protocol.Urgent}, {Name: "ReadAnswer", Delivery: protocol.Urgent},
		{Name: "Lead", Delivery: protocol.Urgent}, {Name: "Ask"}, {Name: "Tell", Brings: protocol.BringsLog},
		{Name: "Relay", Brings: protocol.BringsLog}, {Name: "Relayed", Brings: protocol.BringsLog, Forwarded: true},
		{Name: "Gathered"},
	},
	Decode: decode, Describe: describe, Claims: claims,
}

// Part is what these messages have in addition to the head of all protocols' messages. Which fields mean something
// depends on the type; unused ones are zero.
type Part struct {
	Ballot             paxos.Ballot
	Slot, Hint, Logged protocol.Index
	Round              uint64 // Heartbeat, Alive: the confirmation of leadership; Read, ReadAnswer: who asked
	// ProposeRefused: whose first command it is, and why not. ReadAnswer: why not.
	ID       protocol.ProposalID
	Reason   protocol.Reason
	Force    bool // Prepare: the leader transfers leadership
	More     bool // Promise: the sender has votes or decisions after Hint. Heartbeat: the sender does not lead yet
	Lacking  bool // Promise, Accepted, Alive: bodies of decided entries are missing here
	Promised bool // Heartbeat: the receiver has promised the ballot. Accepted, Alive: the sender has, on its disk
	// Ballots are those of the entries after Commit, in a Promise.
	Ballots []paxos.Ballot
	// Members are the members of a Relay's group without the relay, or a Relayed's proposer.
	Members []protocol.MemberID
	// Held is what a Gathered says.
	Held []relay.Held
}

const partSize = 8*8 + 2

// mostBallots limits the entries of a Promise.
const mostBallots = 4096

// Append implements protocol.Part.
func (p *Part) Append(dst []byte) []byte {
	dst = slots.AppendNumbers(dst,
		uint64(p.Ballot), uint64(p.Slot), uint64(p.Hint), uint64(p.Logged), p.Round,
		uint64(p.ID.Session.Member), p.ID.Session.Incarnation, p.ID.Seq,
	)
	dst = append(dst, slots.Flags(p.Force, p.More, p.Lacking, p.Promised), byte(p.Reason))
	for _, b := range p.Ballots {
		dst = slots.AppendNumbers(dst, uint64(b))
	}
	return relay.AppendMembers(dst, p.Members, p.Held)
}

// decode is the codec's. A message and its part are one piece of memory.
func decode(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	if n := len(b) - partSize; n < 0 || n%8 != 0 || n > 8*mostOf(t) {
		return nil, slots.CorruptPart(t, b)
	}
	m := &struct {
		protocol.Message
		part Part
	}{}
	u := func(i int) uint64 { return slots.Number(b, i) }
	flags := b[64]
	m.part = Part{
		Ballot: paxos.Ballot(u(0)), Slot: protocol.Index(u(1)), Hint: protocol.Index(u(2)), Logged: protocol.Index(u(3)),
		Round:  u(4),
		ID:     protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(u(5)), Incarnation: u(6)}, Seq: u(7)},
		Reason: protocol.Reason(b[65]), Force: slots.Flag(flags, 0), More: slots.Flag(flags, 1),
		Lacking: slots.Flag(flags, 2), Promised: slots.Flag(flags, 3),
	}
	switch rest := b[partSize:]; t {
	case MsgRelay, MsgRelayed:
		m.part.Members = relay.DecodeMembers(rest)
	case MsgGathered:
		m.part.Held = relay.DecodeHeld(rest)
	default:
		for at := 0; at < len(rest); at += 8 {
			m.part.Ballots = append(m.part.Ballots, paxos.Ballot(slots.Number(rest[at:], 0)))
		}
	}
	m.Part = &m.part
	return &m.Message, nil
}

// mostOf limits the numbers that follow a part of a type.
func mostOf(t protocol.MessageType) int {
	switch t {
	case MsgPromise:
		return mostBallots
	case MsgRelay, MsgRelayed, MsgGathered:
		return 2 * relay.MaxMembers
	}
	return 0
}

// describe returns the contents of a message for logs and scripts.
func describe(m *protocol.Message) string {
	p := partOf(m)
	var s slots.Words
	s.Add(p.Ballot != 0, "ballot %s", p.Ballot)
	s.Add(p.Slot != 0, "slot %d", p.Slot)
	s.Add(p.Hint != 0, "hint %d", p.Hint)
	s.Add(p.Logged != 0, "logged %d", p.Logged)
	s.Add(len(p.Ballots) > 0, "accepted %s", p.Ballots)
	s.Add(p.More, "more")
	s.Add(p.Force, "forced")
	s.Add(p.Lacking, "lacking")
	s.Add(p.Promised, "promised")
	s.Add(len(p.Members) > 0, "members %s", p.Members)
	s.Add(len(p.Held) > 0, "held %s", p.Held)
	s.Add(p.Reason != protocol.ReasonNone, "%s", p.Reason)
	return s.String()
}

// claims returns what must hold if a member sends a message, for the simulator's judges.
func claims(m *protocol.Message) (c protocol.Claims) {
	switch p := partOf(m); m.Type {
	case MsgPrepare, MsgAccept:
		c.Term = true // it is the sender's ballot
	case MsgHeartbeat:
		c.Acked = p.Slot
	case MsgLead:
		c.Moves = true
	}
	return c
}

func partOf(m *protocol.Message) Part { return slots.PartOf[Part](m) }

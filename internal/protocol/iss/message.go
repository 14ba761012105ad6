package iss

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// The messages of ISS. In all of them Term is the sender's epoch. In those about a segment, Segment is its first slot,
// Nil those of its slots that the sender knows to be ⊥ and the receiver perhaps not, and Upto is up to where the
// sender knows all of its slots to be decided.
const (
	// Phase 2: Ballot, entries. Slot: what the receiver acknowledged.
	MsgAccept = protocol.FirstOwnType + iota
	// Ballot. Slot: everything up to it is decided, or accepted under the ballot.
	MsgAccepted
	// Ballot: a higher one, which the sender has promised.
	MsgRefused
	// Phase 1: Ballot, for all slots from Slot on.
	MsgPrepare
	// Ballot: the sender's votes and decisions in the slots from Slot to Hint; Never; More: there are others.
	MsgPromise
	// A heartbeat. Slot: what the sender's disk has of the log; Hint: what it knows of the receiver's; Upto: the last
	// slot in which the sender knows a value or a vote.
	MsgBeat
	// A request for the log after Commit; More: for a snapshot, because the sender knows no members.
	MsgAsk
	// Decided entries.
	MsgTell
	// Entries for the receiver's bucket, or for any leader.
	MsgPropose
	// ID, Reason.
	MsgProposeRefused
	// A request for the last slot of which the receiver knows a vote or a decision: Context, Round.
	MsgRead
	// The answer: Context, Round, Slot.
	MsgReadAnswer
	// An Accept to be forwarded to Members. Context: the last slot; 0: no answer.
	MsgRelay
	// An Accept of the proposer in Members, forwarded by a relay, to which the answer goes. Context: as in Relay.
	MsgRelayed
	// Ballot, Held: what members of a group have accepted.
	MsgGathered
)

// Codec has the types of these messages and their encoding.
var Codec = &protocol.Codec{
	Types: []protocol.Traits{
		{Name: "Accept", Brings: protocol.BringsLog}, {Name: "Accepted"}, {Name: "Refused"},
		{Name: "Prepare"}, {Name: "Promise"}, {Name: "Beat", Delivery: protocol.Urgent},
		{Name: "Ask"}, {Name: "Tell", Brings: protocol.BringsLog},
		{Name: "Propose", Brings: protocol.BringsProposals}, {Name: "ProposeRefused"},
		{Name: "Read", Delivery: protocol.Urgent}, {Name: "ReadAnswer", Delivery: protocol.Urgent},
		{Name: "Relay", Brings: protocol.BringsLog}, {Name: "Relayed", Brings: protocol.BringsLog, Forwarded: true},
		{Name: "Gathered"},
	},
	Decode: decode, Describe: describe, Claims: claims, Replaces: replaces,
}

// Part is what these messages have in addition to the head of all protocols' messages. Which fields mean something
// depends on the type; unused ones are zero.
type Part struct {
	Segment, Slot, Hint, Upto protocol.Index
	Ballot                    paxos.Ballot
	Round                     uint64 // Read, ReadAnswer: the question's number in the asking incarnation
	// ProposeRefused: whose first command it is, and why not.
	ID     protocol.ProposalID
	Reason protocol.Reason
	More   bool
	// Serving: Beat: the sender leads its segment under ballot 0. Lacking: bodies of decided entries are missing there.
	Serving, Lacking bool
	// Nil are slots that are ⊥. Never: in these the segment's leader never proposes anything.
	Nil, Never paxos.Spans
	// Ballots are those of the entries of a Promise; known: it is decided.
	Ballots []paxos.Ballot
	// Members are the members of a Relay's group without the relay, or a Relayed's proposer. Held is the contents of a
	// Gathered.
	Members []protocol.MemberID
	Held    []relay.Held
}

// known stands for the ballot of an entry that is decided.
const known = ^paxos.Ballot(0)

// partOf returns a message's part, which is never modified, or an empty one.
func partOf(m *protocol.Message) *Part {
	if p, ok := m.Part.(*Part); ok {
		return p
	}
	return &Part{}
}

// describe returns the contents of a message for logs and scripts.
func describe(m *protocol.Message) string {
	p := partOf(m)
	var s slots.Words
	s.Add(p.Segment != 0, "segment %d", p.Segment)
	s.Add(p.Segment != 0, "ballot %s", p.Ballot)
	s.Add(p.Slot != 0, "slot %d", p.Slot)
	s.Add(p.Hint != 0, "hint %d", p.Hint)
	s.Add(p.Segment != 0 && p.Upto >= p.Segment, "upto %d", p.Upto)
	s.Add(p.More, "more")
	s.Add(p.Serving, "serving")
	s.Add(len(p.Members) > 0, "members %s", p.Members)
	s.Add(len(p.Held) > 0, "held %s", p.Held)
	s.Add(p.Lacking, "lacking")
	s.Add(p.Reason != protocol.ReasonNone, "%s", p.Reason)
	s.Add(len(p.Nil) > 0, "nil %s", p.Nil)
	s.Add(len(p.Never) > 0, "never %s", p.Never)
	for i, b := range p.Ballots {
		if i < len(m.Entries) && b == known {
			s.Add(true, "%d is decided", m.Entries[i].Index)
		} else if i < len(m.Entries) {
			s.Add(true, "%d has a vote of %s", m.Entries[i].Index, b)
		}
	}
	return s.String()
}

// claims returns what must hold if a member sends a message, for the simulator's judges.
func claims(m *protocol.Message) (c protocol.Claims) {
	if p := partOf(m); m.Type == MsgBeat {
		c.Acked = p.Hint
	}
	return c
}

// replaces reports whether an acknowledgement has all that an earlier one had. What a member has accepted under a
// ballot does not become less.
func replaces(later, earlier *protocol.Message) bool {
	if later.Type != MsgAccepted || earlier.Type != MsgAccepted || later.Term != earlier.Term {
		return false
	}
	l, e := partOf(later), partOf(earlier)
	return l.Segment == e.Segment && l.Ballot == e.Ballot && l.Slot >= e.Slot && later.Context >= earlier.Context
}

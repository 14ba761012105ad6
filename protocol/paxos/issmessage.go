package paxos

import (
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/slots"
)

// The messages of ISS. In all of them Term is the sender's epoch. In those about a segment, Segment is its first slot,
// Nil those of its slots that the sender knows to be ⊥ and the receiver perhaps not, and Upto is up to where the
// sender knows all of its slots to be decided.
const (
	MsgISSAccept         = protocol.FirstOwnType + iota // phase 2: Ballot, entries. Slot: what the receiver acknowledged
	MsgISSAccepted                                      // Ballot, Slot: all up to here is decided or accepted under the ballot
	MsgISSRefused                                       // Ballot: one that is higher than what was asked for
	MsgISSPrepare                                       // phase 1: Ballot, for all slots from Slot on
	MsgISSPromise                                       // Ballot: what the sender has of the slots from Slot to Hint; Never; More: there are others
	MsgISSBeat                                          // that the sender is there. Slot: what its disk has of the log; Hint: what it knows of the receiver's
	MsgISSAsk                                           // for the log after Commit; More: a snapshot, because the sender knows no members
	MsgISSTell                                          // decided entries
	MsgISSPropose                                       // entries for the sender's bucket, or for any leader
	MsgISSProposeRefused                                // ID, Reason
	MsgISSRead                                          // Context, Round: what is the last slot that the receiver knows anything of
	MsgISSReadAnswer                                    // Context, Round, Slot
	MsgISSRelay                                         // as Accept, and pass it on to Members. Context: the last slot; 0: nobody answers
	MsgISSRelayed                                       // as Accept, of the proposer in Members, by a relay, which is answered. Context: as in Relay
	MsgISSGathered                                      // Ballot, Held: what members of a group have accepted
)

// ISSCodec is what members know of these messages.
var ISSCodec = &protocol.Codec{
	Types: []protocol.Traits{
		{Name: "Accept", Brings: protocol.BringsLog}, {Name: "Accepted"}, {Name: "Refused"},
		{Name: "Prepare"}, {Name: "Promise"}, {Name: "Beat", Way: protocol.Urgent},
		{Name: "Ask"}, {Name: "Tell", Brings: protocol.BringsLog},
		{Name: "Propose", Brings: protocol.BringsProposals}, {Name: "ProposeRefused"},
		{Name: "Read", Way: protocol.Urgent}, {Name: "ReadAnswer", Way: protocol.Urgent},
		{Name: "Relay", Brings: protocol.BringsLog}, {Name: "Relayed", Brings: protocol.BringsLog, Forwarded: true}, {Name: "Gathered"},
	},
	Decode: decodeISS, Describe: describeISS, Claims: claimsISS,
}

// ISSPart is what these messages say beside the head that all protocols' messages have. Which fields mean
// something depends on the type; unused ones are zero.
type ISSPart struct {
	Segment, Slot, Hint, Upto protocol.Index
	Ballot                    Ballot
	Round                     uint64 // Read, ReadAnswer: the question's number in the asking life
	// ProposeRefused: whose first command it is, and why not.
	ID     protocol.ProposalID
	Reason protocol.Reason
	More   bool
	// Serving: Beat: the sender leads its segment under ballot 0. Lacking: bodies of decided entries are missing there.
	Serving, Lacking bool
	// Nil are slots that are ⊥. Never: in these the segment's leader never proposes anything.
	Nil, Never spans
	// Ballots are those of the entries of a Promise; known: it is decided.
	Ballots []Ballot
	// Members are those of a Relay's group but for the relay, or a Relayed's proposer. Held is what a Gathered says.
	Members []protocol.MemberID
	Held    []held
}

// known stands for the ballot of an entry that is decided.
const known = ^Ballot(0)

const issPartSize = 10*8 + 2

// Append implements protocol.Part.
func (p *ISSPart) Append(dst []byte) []byte {
	lengths := uint64(len(p.Nil)) | uint64(len(p.Never))<<16 | uint64(len(p.Ballots))<<32 | uint64(len(p.Members)+2*len(p.Held))<<48
	dst = slots.AppendNumbers(dst,
		uint64(p.Segment), uint64(p.Slot), uint64(p.Hint), uint64(p.Upto), uint64(p.Ballot), p.Round,
		uint64(p.ID.Session.Member), p.ID.Session.Incarnation, p.ID.Seq, lengths,
	)
	dst = append(dst, slots.Flags(p.More, p.Serving, p.Lacking), byte(p.Reason))
	for _, list := range [...]spans{p.Nil, p.Never} {
		for _, x := range list {
			dst = slots.AppendNumbers(dst, uint64(x.from), uint64(x.to))
		}
	}
	for _, b := range p.Ballots {
		dst = slots.AppendNumbers(dst, uint64(b))
	}
	return appendRelay(dst, p.Members, p.Held)
}

// decodeISS is the codec's. A message and its part are one piece of memory.
func decodeISS(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	if len(b) < issPartSize {
		return nil, slots.CorruptPart(t, b)
	}
	m := &struct {
		protocol.Message
		part ISSPart
	}{}
	u := func(i int) uint64 { return slots.Number(b, i) }
	lengths, rest, flags := u(9), b[issPartSize:], b[80]
	nils, nevers, ballots := int(uint16(lengths)), int(uint16(lengths>>16)), int(uint16(lengths>>32))
	relays := int(lengths >> 48)
	if relays > mostRelays(t) || len(rest) != 16*nils+16*nevers+8*ballots+8*relays {
		return nil, slots.CorruptPart(t, b)
	}
	m.part = ISSPart{
		Segment: protocol.Index(u(0)), Slot: protocol.Index(u(1)), Hint: protocol.Index(u(2)), Upto: protocol.Index(u(3)),
		Ballot: Ballot(u(4)), Round: u(5),
		ID:     protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(u(6)), Incarnation: u(7)}, Seq: u(8)},
		Reason: protocol.Reason(b[81]), More: slots.Flag(flags, 0), Serving: slots.Flag(flags, 1), Lacking: slots.Flag(flags, 2),
	}
	m.part.Nil, m.part.Never = decodeSpans(rest[:16*nils]), decodeSpans(rest[16*nils:16*(nils+nevers)])
	rest = rest[16*(nils+nevers):]
	for i := range ballots {
		m.part.Ballots = append(m.part.Ballots, Ballot(slots.Number(rest, i)))
	}
	if rest = rest[8*ballots:]; t == MsgISSGathered {
		m.part.Held = decodeHeld(rest)
	} else {
		m.part.Members = decodeMembers(rest)
	}
	m.Part = &m.part
	return &m.Message, nil
}

// mostRelays is how many numbers about relays a part of a type may have.
func mostRelays(t protocol.MessageType) int {
	if t == MsgISSRelay || t == MsgISSRelayed || t == MsgISSGathered {
		return 2 * mostHeld
	}
	return 0
}

func decodeSpans(b []byte) (out spans) {
	for i := 0; i < len(b)/8; i += 2 {
		out = append(out, span{protocol.Index(slots.Number(b, i)), protocol.Index(slots.Number(b, i+1))})
	}
	return out
}

// describeISS says for a person what is in a message.
func describeISS(m *protocol.Message) string {
	p := slots.PartOf[ISSPart](m)
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

// claimsISS says for judges what must be so if a member sends a message.
func claimsISS(m *protocol.Message) (c protocol.Claims) {
	if p := slots.PartOf[ISSPart](m); m.Type == MsgISSBeat {
		c.Acked = p.Hint
	}
	return c
}

package epaxos

import (
	"encoding/binary"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// The messages. Most name a command by its ID. A command travels as an entry of the message, with its first
// dependencies in the part (Known).
const (
	MsgPreAccept   = protocol.FirstOwnType + iota // a command
	MsgPreAccepted                                // Deps
	MsgAccept                                     // Ballot, a command or Noop, Deps
	MsgAccepted                                   // Ballot
	MsgRefused                                    // Ballot: a higher one was promised
	MsgDecided                                    // a command, Noop, or neither: the receiver's command; Deps
	MsgRecover                                    // Ballot
	MsgPromise                                    // Ballot, Accepted, Phase; a command or Noop and Deps, if there are any
	MsgValidate                                   // Ballot, a command
	MsgValidated                                  // Ballot; Contradicts, Open, More
	MsgWaiting                                    // Ballot: the sender waits; it rules out the fast path (rule 8)
	MsgHeartbeat                                  // Deps: what the sender has executed; First: what it knows
	MsgAsk                                        // for what the sender has not executed: all but Deps
	MsgTell                                       // entries of the sender's log, after First; Deps: what it has executed
	MsgRead                                       // a read request with number Context
	MsgReadAnswer                                 // Deps: what the sender knows
)

// Codec encodes and decodes these messages.
var Codec = &protocol.Codec{
	Types: []protocol.Traits{
		{Name: "PreAccept", Brings: protocol.BringsLog}, {Name: "PreAccepted"},
		{Name: "Accept", Brings: protocol.BringsLog}, {Name: "Accepted"}, {Name: "Refused"},
		{Name: "Decided", Brings: protocol.BringsLog},
		{Name: "Recover"}, {Name: "Promise", Brings: protocol.BringsLog},
		{Name: "Validate", Brings: protocol.BringsLog}, {Name: "Validated"}, {Name: "Waiting"},
		{Name: "Heartbeat", Delivery: protocol.BothWays}, {Name: "Ask"}, {Name: "Tell", Brings: protocol.BringsLog},
		{Name: "Read", Delivery: protocol.Urgent}, {Name: "ReadAnswer", Delivery: protocol.Urgent},
	},
	Decode: decode, Describe: describe,
}

// Part has the fields of these messages beyond the head that all protocols' messages have. Which fields mean something
// depends on the type; unused ones are zero.
type Part struct {
	ID          ID
	Ballot      Ballot
	Accepted    Ballot
	Phase       Phase
	Noop        bool
	Known       bool // the message has the command as its entry
	Contradicts bool // a decided command contradicts
	More        bool // more contradicts than Open
	Deps, First Vector
	Open        []ID
}

// Append implements protocol.Part.
func (p *Part) Append(dst []byte) []byte {
	dst = append(dst, byte(p.Phase), slots.Flags(p.Noop, p.Known, p.Contradicts, p.More))
	dst = appendID(dst, p.ID)
	dst = binary.AppendUvarint(dst, uint64(p.Ballot))
	dst = binary.AppendUvarint(dst, uint64(p.Accepted))
	dst = appendVector(dst, p.Deps)
	dst = appendVector(dst, p.First)
	return appendIDs(dst, p.Open)
}

// decode is the codec's. A message and its part are one piece of memory.
func decode(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	in := reader{b: b}
	m := &struct {
		protocol.Message
		part Part
	}{}
	p := &m.part
	p.Phase = Phase(in.byte())
	flags := in.byte()
	p.Noop, p.Known, p.Contradicts, p.More = slots.Flag(flags, 0), slots.Flag(flags, 1), slots.Flag(flags, 2),
		slots.Flag(flags, 3)
	p.ID = in.id()
	p.Ballot, p.Accepted = Ballot(in.number()), Ballot(in.number())
	p.Deps, p.First, p.Open = in.vector(), in.vector(), in.ids()
	if !in.ended() || p.Phase > Decided || flags > 15 || (p.ID.Column == 0 || p.ID.Number == 0) != (t >= MsgHeartbeat) {
		return nil, slots.CorruptPart(t, b)
	}
	m.Part = p
	return &m.Message, nil
}

// describe returns the contents of a message for logs and scripts.
func describe(m *protocol.Message) string {
	p := slots.PartOf[Part](m)
	var s slots.Words
	s.Add(p.ID != ID{}, "command %s", p.ID)
	s.Add(p.Ballot != 0, "ballot %s", p.Ballot)
	s.Add(p.Accepted != 0, "accepted %s", p.Accepted)
	s.Add(p.Phase != Unknown, "%s", p.Phase)
	s.Add(p.Noop, "no-op")
	s.Add(len(p.Deps) > 0, "depends on %s", p.Deps)
	s.Add(len(p.First) > 0, "at first on %s", p.First)
	s.Add(p.Contradicts, "contradicted")
	s.Add(len(p.Open) > 0, "after %v", p.Open)
	s.Add(p.More, "and more")
	return s.String()
}

// commandPart is the part of a message with a command.
func commandPart(id ID, b Ballot, cmd *Command) Part {
	return Part{ID: id, Ballot: b, Known: true, First: cmd.First}
}

// valuePart is the part of a message with a value.
func valuePart(id ID, b Ballot, v Value) Part {
	if v.Command == nil {
		return Part{ID: id, Ballot: b, Noop: true, Deps: v.Deps}
	}
	p := commandPart(id, b, v.Command)
	p.Deps = v.Deps
	return p
}

// command is the command in a message; nil: there is none, or it is invalid.
func (p *Part) command(m *protocol.Message) *Command {
	if !p.Known || len(m.Entries) != 1 {
		return nil
	}
	cmd, err := commandOf(p.ID, m.Entries[0])
	if err != nil {
		return nil
	}
	cmd.First = p.First
	return cmd
}

// value is the value in a message, if it is complete.
func (p *Part) value(m *protocol.Message) (Value, bool) {
	v := Value{Command: p.command(m), Deps: p.Deps}
	return v, p.Noop != (v.Command != nil)
}

// report is the content of a promise.
func (p *Part) report(from Column, m *protocol.Message) (Report, bool) {
	r := Report{From: from, Ballot: p.Accepted, Phase: p.Phase}
	if p.Phase == Unknown {
		return r, true
	}
	v, complete := p.value(m)
	r.Value = v
	return r, complete
}

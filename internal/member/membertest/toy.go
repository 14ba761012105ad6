package membertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// The messages of a protocol for tests.
const (
	MsgLog = protocol.FirstOwnType + iota
	MsgAck
	MsgProposals
)

var Codec = &protocol.Codec{Types: []protocol.Traits{
	{Name: "Log", Brings: protocol.BringsLog}, {Name: "Ack"}, {Name: "Proposals", Brings: protocol.BringsProposals},
}}

func ReshapeAt(index protocol.Index, instances int) protocol.Entry {
	e := protocol.NewReshape(instances)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

func WovenMeta(instances int) member.Meta { return member.Bootstrap(order.Begin(instances, true), nil) }

func SkipAt(index protocol.Index, round protocol.Round) protocol.Entry {
	e := protocol.NewSkip(round)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

// OneCommand returns a sealed batch of one command, and the place for what that command is told.
func OneCommand(seq uint64, command string, into *[]string) *intake.Batch {
	b := intake.NewBatch(0, 0, 0)
	b.Add([]byte(command), func(_ any, err error) {
		switch {
		case err == nil:
			*into = append(*into, command)
		case errors.Is(err, member.ErrResultUnknown):
			*into = append(*into, command+" unknown")
		default:
			*into = append(*into, command+" "+err.Error())
		}
	})
	b.Seal(Session, seq, seq)
	return b
}

func MetaAt(position protocol.Position, index protocol.Index, term protocol.Term) member.Meta {
	return member.Meta{
		Cursor: order.Cursor{Position: position, Points: []order.Point{{Instance: 1, Index: index, Term: term}}},
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}}},
	}
}

// History is a state machine that remembers what it was told.
type History struct {
	Lines []string
	Err   error
}

func (h *History) Apply(commands []member.Command) error {
	for i := range commands {
		h.Lines = append(h.Lines, fmt.Sprintf("%d:%s", commands[i].Position, commands[i].Data))
		commands[i].Result = len(h.Lines)
	}
	return h.Err
}

func (h *History) Snapshot() (member.Snapshot, error) { return frozen(strings.Join(h.Lines, " ")), nil }

func (h *History) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	h.Lines = strings.Fields(string(b))
	return err
}

type frozen string

func (f frozen) WriteTo(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(f))
	return err
}

func (f frozen) Close() error { return nil }

func EntryOf(index protocol.Index, b *intake.Batch) protocol.Entry {
	e := b.Entry
	e.Index, e.Term = index, 1
	return e
}

// LaterSession is the session of the incarnation after that in which a command was proposed.
var LaterSession = protocol.Session{Member: Session.Member, Incarnation: Session.Incarnation + 1}

var Session = protocol.NewSession(1, protocol.LogID{}, 4, true)

func Sealed(seq uint64, commands ...string) *intake.Batch {
	b := intake.NewBatch(0, 16, 1)
	for _, c := range commands {
		b.Add([]byte(c), func(any, error) {})
	}
	b.Seal(Session, seq, seq)
	return b
}

// GroupAt is a group in a log.
func GroupAt(index protocol.Index, batches ...*intake.Batch) protocol.Entry {
	var in []protocol.Entry
	for _, b := range batches {
		in = append(in, b.Entry)
	}
	e := protocol.NewGroup(in)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

// OfMember is a batch that another member proposed.
func OfMember(id protocol.MemberID, seq uint64, commands ...string) *intake.Batch {
	b := intake.NewBatch(0, 0, 0)
	for _, c := range commands {
		b.Add([]byte(c), func(any, error) {})
	}
	b.Seal(protocol.NewSession(id, protocol.LogID{}, 1, true), seq, seq)
	return b
}

// Keyed is how a protocol takes proposals that has two paths, by key, and answers early.
var Keyed = protocol.Proposing{Accepted: true, Keys: true, Path: func(o *protocol.ProposeOptions) protocol.Path {
	if len(o.Keys) > 0 {
		return protocol.Path(o.Keys[0] % 2)
	}
	return 0
}}

var EarlyAnswer = protocol.ProposeOptions{Mode: protocol.ModeAccepted}

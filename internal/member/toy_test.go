package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// The messages of a protocol for tests.
const (
	msgLog = protocol.FirstOwnType + iota
	msgAck
	msgProposals
)

var toyCodec = &protocol.Codec{Types: []protocol.Traits{
	{Name: "Log", Brings: protocol.BringsLog}, {Name: "Ack"}, {Name: "Proposals", Brings: protocol.BringsProposals},
}}

func reshapeAt(index protocol.Index, instances int) protocol.Entry {
	e := protocol.NewReshape(instances)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

func wovenMeta(instances int) Meta { return Bootstrap(order.Begin(instances, true), nil) }

func skipAt(index protocol.Index, round protocol.Round) protocol.Entry {
	e := protocol.NewSkip(round)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

// told returns a sealed batch of one command, and the place for what that command is told.
func told(seq uint64, command string, into *[]string) *Batch {
	b := NewBatch(0, 0, 0)
	b.Add([]byte(command), func(_ any, err error) {
		switch {
		case err == nil:
			*into = append(*into, command)
		case errors.Is(err, ErrResultUnknown):
			*into = append(*into, command+" unknown")
		default:
			*into = append(*into, command+" "+err.Error())
		}
	})
	b.Seal(life, seq, seq)
	return b
}

func metaAt(position protocol.Position, index protocol.Index, term protocol.Term) Meta {
	return Meta{
		Cursor: order.Cursor{Position: position, Points: []order.Point{{Instance: 1, Index: index, Term: term}}},
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}}},
	}
}

// history is a state machine that remembers what it was told.
type history struct {
	lines []string
	err   error
}

func (h *history) Apply(commands []Command) error {
	for i := range commands {
		h.lines = append(h.lines, fmt.Sprintf("%d:%s", commands[i].Position, commands[i].Data))
		commands[i].Result = len(h.lines)
	}
	return h.err
}

func (h *history) Snapshot() (Snapshot, error) { return frozen(strings.Join(h.lines, " ")), nil }

func (h *history) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	h.lines = strings.Fields(string(b))
	return err
}

type frozen string

func (f frozen) WriteTo(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(f))
	return err
}

func (f frozen) Close() error { return nil }

func entryOf(index protocol.Index, b *Batch) protocol.Entry {
	e := b.Entry
	e.Index, e.Term = index, 1
	return e
}

// later is the session of the life after that in which a command was proposed.
var later = protocol.Session{Member: life.Member, Incarnation: life.Incarnation + 1}

var life = protocol.NewSession(1, protocol.LogID{}, 4, true)

func sealed(seq uint64, commands ...string) *Batch {
	b := NewBatch(0, 16, 1)
	for _, c := range commands {
		b.Add([]byte(c), func(any, error) {})
	}
	b.Seal(life, seq, seq)
	return b
}

// groupAt is a group in a log.
func groupAt(index protocol.Index, batches ...*Batch) protocol.Entry {
	var in []protocol.Entry
	for _, b := range batches {
		in = append(in, b.Entry)
	}
	e := protocol.NewGroup(in)
	e.Seal(index, 1, make([]byte, protocol.HeadSize))
	return e
}

// ofMember is a batch that another member proposed.
func ofMember(id protocol.MemberID, seq uint64, commands ...string) *Batch {
	b := NewBatch(0, 0, 0)
	for _, c := range commands {
		b.Add([]byte(c), func(any, error) {})
	}
	b.Seal(protocol.NewSession(id, protocol.LogID{}, 1, true), seq, seq)
	return b
}

// keyed is how a protocol takes proposals that has two paths, by key, and answers early.
var keyed = protocol.Proposing{Accepted: true, Keys: true, Path: func(o *protocol.ProposeOptions) protocol.Path {
	if len(o.Keys) > 0 {
		return protocol.Path(o.Keys[0] % 2)
	}
	return 0
}}

var early = protocol.ProposeOptions{Mode: protocol.ModeAccepted}

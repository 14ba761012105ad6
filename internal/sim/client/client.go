package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

var (
	WritesAnsweredEarly    = count.New("writes_answered_before_they_are_applied", "writes answered early", count.Staged)
	readsAnswered          = count.New("reads", "reads")
	readsAtReplacedLeaders = count.New("reads_asked_of_a_replaced_leader", "reads asked of a replaced leader")
	writesRefused          = count.New("writes_refused", "writes refused")
	writesAfterFailover    = count.New("writes_acknowledged_after_a_change_of_leader", "failovers of a write")
	writesWithBody         = count.New("writes_with_a_body", "writes with a body")
)

// Client sends one operation after the other to a member, as a program would.
type Client struct {
	w      *Clients
	Number int // in histories and traces
	manner manner
	Home   protocol.MemberID // the member that it asks first
	// Seen is the last value that it read, for Swap; Raw is the same with tokens for bodies. It is the value of key.
	Seen, Raw, key string
	// pipelines: the client proposes without waiting. pipe is its current pipe.
	pipelines bool
	pipe      *pipe
}

// Open starts the clients.
func (w *Clients) Open() {
	for i := range w.own.Clients {
		c := &Client{w: w, Number: i, manner: w.drawManner(), Home: protocol.MemberID(1 + w.Pick(w.Set.Nodes))}
		c.pipelines = w.From(pipeClients).Yes(w.own.Load.Pipes)
		w.After(w.Between(0, w.Set.Election), c.next)
	}
}

// next begins the next operation, or several at once, until the limit is reached.
func (c *Client) next() {
	w := c.w
	if w.Calm || len(w.History.Ops) >= w.own.Operations {
		return
	}
	m := c.chooses()
	if m == nil {
		w.After(w.Set.Heartbeat, c.next)
		return
	}
	open := 1
	if w.Chance(w.own.Load.Bursts) {
		open += w.Pick(w.own.Load.Burst)
	}
	if c.pipelines {
		open += w.From(pipeClients).Below(Pipeline)
	}
	ended := func() {
		if open--; open == 0 {
			w.After(w.Between(0, w.own.Think), c.next)
		}
	}
	for range open {
		c.Perform(m, c.draw(), w.own.Patience, ended)
	}
}

// Operation returns the client's next operation. The value of an append or a put is the operation's number.
func (c *Client) Operation(kind check.Kind, key string) *history.Operation {
	op := &history.Operation{Operation: check.Operation{Client: c.Number, Kind: kind, Key: key}}
	if kind == check.Append || kind == check.Put {
		op.Value = fmt.Sprintf("%d,", len(c.w.History.Ops))
	}
	return op
}

// draw draws the client's next operation.
func (c *Client) draw() *history.Operation {
	w := c.w
	op := c.Operation(check.Append, w.DrawKey())
	switch x := w.Rand.Float64(); {
	case w.Chance(w.own.Reads):
		op.Kind, op.Value = check.Get, ""
	case x < 0.02:
		op.Kind, op.Value = check.Delete, ""
	case x < 0.10 && c.Seen != "":
		op.Kind, op.Key, op.Expect, op.Raw = check.Swap, c.key, c.Seen, c.Raw
	case w.Chance(w.own.Load.Overwrite):
		op.Kind = check.Put
	}
	if op.Value != "" && w.Chance(w.Set.Bodies.Share) {
		op.Carry(len(w.History.Ops), w.DrawBody())
	}
	return op
}

// DrawKey draws a key: the first one, which many clients use, or any.
func (w *Clients) DrawKey() string {
	if w.Chance(w.own.Load.Hot) {
		return machine.KeyName(0)
	}
	return machine.KeyName(w.Pick(w.own.Keys))
}

// Perform sends an operation to a member. It calls then when the operation ends, or after timeout.
func (c *Client) Perform(m *node.Member, op *history.Operation, timeout time.Duration, then func()) {
	w := c.w
	op.Elections = w.Events.Of(node.ElectionsWon)
	w.History.Begin(op)
	w.Tracef("client %d asks %s: %d %s %s %s", c.Number, m.ID, op.Number, op.Kind, op.Key, op.Value)
	end := func() {
		if !op.Ended {
			op.Ended = true
			w.After(0, then) // never inside a call of the member
		}
	}
	w.After(timeout, end)
	if op.Kind == check.Get {
		if m.Replaced() {
			w.Count(readsAtReplacedLeaders)
		}
		m.Read(w.drawBarrier(), func(ok bool) { c.read(m, op, ok, end) })
		return
	}
	padding := 0
	if !w.Calm {
		padding = w.Pick(w.Set.Padding + 1)
	}
	if op.Body != nil {
		w.Count(writesWithBody)
	}
	c.propose(m, op, op.Command(padding), func(result any, err error) {
		op.Err = err
		m.JudgeTurnedAway(op.Number, err)
		c.wrote(op, result, err)
		end()
	})
	c.hurry(m, op, end)
}

// read returns the state at the time at which the read is allowed. First it fetches the bodies in the value. If that
// fails, they may have been dropped meanwhile, and it reads the state again.
func (c *Client) read(m *node.Member, op *history.Operation, ok bool, end func()) {
	switch {
	case op.Ended:
	case !ok:
		c.w.History.Fail(op)
		end()
	case m.Sick(): // a read of a damaged state detects the damage
		m.CheckState()
		c.w.History.Fail(op)
		end()
	default:
		v := m.Machines.Of(op.Key).Value(op.Key)
		m.Resolve(v.Text, func(text string, err error) {
			if err == nil {
				c.answered(m, op, v, text)
				end()
				return
			}
			c.w.Tracef("client %d reads at %s: %s: %v", c.Number, m.ID, op.Key, err)
			m.Later(c.w.Set.Heartbeat, func() { c.read(m, op, true, end) })
		})
	}
}

func (c *Client) answered(m *node.Member, op *history.Operation, v machine.Value, text string) {
	if op.Ended {
		return
	}
	c.Seen, c.Raw, c.key = text, v.Text, op.Key
	c.w.Tracef("client %d reads at %s: %s = %q", c.Number, m.ID, op.Key, text)
	c.w.Count(readsAnswered)
	c.w.History.Read(op, text, v)
}

// wrote judges a response. After a success the command must have taken effect. After a definite failure it must not.
func (c *Client) wrote(op *history.Operation, result any, err error) {
	w := c.w
	if err != nil {
		w.Tracef("client %d is refused %d: %v", c.Number, op.Number, err)
		if errors.As(err, new(*intake.BrokenError)) || !errors.Is(err, member.ErrMaybeCommitted) && !errors.Is(err, member.ErrResultUnknown) {
			w.Count(writesRefused)
			w.History.Refuse(op, err)
		}
		op.Told = op.Told || errors.Is(err, member.ErrResultUnknown)
		return
	}
	if _, early := result.(*intake.Accepted); early {
		w.Tracef("client %d has %d accepted", c.Number, op.Number)
		op.Told = true
		w.Count(WritesAnsweredEarly)
		w.noteToken(op, result.(*intake.Accepted).Token)
		return
	}
	if !op.Effective {
		w.Violate(0, fmt.Errorf("command %d was acknowledged without having taken effect", op.Number))
		return
	}
	w.Tracef("client %d has %d done: %v", c.Number, op.Number, result)
	if w.Events.Of(node.ElectionsWon) > op.Elections {
		w.Count(writesAfterFailover)
	}
	if w.History.Wrote(op, result.(machine.Answer)); !op.Ended {
		w.chase(op.Key)
	}
}

// DrawBody draws a body of random bytes, so that no two bodies are equal.
func (w *Clients) DrawBody() []byte {
	b := &w.Set.Bodies
	n := b.Min + w.Pick(b.Max-b.Min+1)
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(w.Rand.Uint32())
	}
	return body
}

package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/check"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// operation is one operation of a client, with what only the world knows of it.
type operation struct {
	check.Operation
	id    int // in the history
	ended bool
	// tookEffect is when its command was applied first; answer is the result there.
	tookEffect time.Duration
	effective  bool
	answer     answer
	// position is where that was; after, the last one that was acknowledged when it was called.
	position, after protocol.Position
	// elections is how many there had been when it was called.
	elections int
	// refused is a certain failure: it must not take effect any more.
	refused error
	// body is the value, where that travels as a body; expect is what a Swap expects, with
	// tokens for bodies, as state machines have it.
	body   []byte
	expect string
}

// client sends one operation after the other to some member, as a program would.
type client struct {
	w      *World
	number int
	manner manner
	home   protocol.MemberID
	seen   string // what it read last, for Swap
	raw    string // the same with tokens for bodies
	key    string
}

// open starts the clients.
func (w *World) openClients() {
	for i := range w.set.Clients {
		c := &client{w: w, number: i, manner: w.manner(), home: protocol.MemberID(1 + w.pick(w.set.Nodes))}
		w.after(w.between(0, w.set.Election), c.next)
	}
}

// next begins the next operation, or several at once, unless there were enough.
func (c *client) next() {
	w := c.w
	if w.calm || len(w.ops) >= w.set.Operations {
		return
	}
	m := c.chooses()
	if m == nil {
		w.after(w.set.Heartbeat, c.next)
		return
	}
	open := 1
	if w.chance(w.set.Load.Bursts) {
		open += w.pick(w.set.Load.Burst)
	}
	ended := func() {
		if open--; open == 0 {
			w.after(w.between(0, w.set.Think), c.next)
		}
	}
	for range open {
		c.perform(m, c.draw(len(w.ops)), w.set.Patience, ended)
	}
}

func (c *client) draw(number int) *operation {
	w := c.w
	op := &operation{Operation: check.Operation{Client: c.number, Kind: check.Append, Key: w.drawKey(), Value: fmt.Sprintf("%d,", number)}}
	switch x := w.rng.Float64(); {
	case w.chance(w.set.Reads):
		op.Kind, op.Value = check.Get, ""
	case x < 0.02:
		op.Kind, op.Value = check.Delete, ""
	case x < 0.10 && c.seen != "":
		op.Kind, op.Key, op.Expect, op.expect = check.Swap, c.key, c.seen, c.raw
	case w.chance(w.set.Load.Overwrite):
		op.Kind = check.Put
	}
	if op.Value != "" && w.chance(w.set.Bodies.Share) {
		op.carry(number, w.drawBody())
	}
	return op
}

// drawKey draws whose turn it is: a key of which many are after, or any.
func (w *World) drawKey() string {
	if w.chance(w.set.Load.Hot) {
		return "k0"
	}
	return fmt.Sprintf("k%d", w.pick(w.set.Keys))
}

// carry makes a body of the operation's value.
func (op *operation) carry(number int, body []byte) {
	op.body = body
	op.Value = spelled(number, body)
}

// spelled is a body as it stands in the history.
func spelled(number int, body []byte) string {
	return fmt.Sprintf("%d:%d:%08x,", number, len(body), protocol.Digest(body))
}

// command is the operation as it stands in the log.
func (op *operation) command(number, padding int) []byte {
	short := op.Operation
	short.Expect = op.expect
	if op.body != nil {
		short.Value = token(number)
	}
	return command(number, short, padding)
}

// perform sends an operation to a member and calls then when it ended or timeout did.
func (c *client) perform(m *Member, op *operation, timeout time.Duration, then func()) {
	w := c.w
	number := len(w.ops)
	op.Call, op.elections, op.after = int64(w.now), w.events.Elections, w.ackedAt
	op.id = w.history.Begin(op.Operation)
	w.ops = append(w.ops, op)
	w.tracef("client %d asks %s: %d %s %s %s", c.number, m.id, number, op.Kind, op.Key, op.Value)
	end := func() {
		if !op.ended {
			op.ended = true
			w.after(0, then) // never inside of what the member is doing
		}
	}
	w.after(timeout, end)
	if op.Kind == check.Get {
		if m.replaced() {
			w.events.Stranded++
		}
		m.Read(func(ok bool) { c.read(m, op, ok, end) })
		return
	}
	padding := 0
	if !w.calm {
		padding = w.pick(w.set.Padding + 1)
	}
	if op.body != nil {
		w.events.Bodies++
	}
	m.Propose(op.command(number, padding), op.body, func(result any, err error) {
		c.wrote(op, number, result, err)
		end()
	})
}

// read answers with what the state says now that it may be read. Bodies in it are made
// whole first; where that fails, they may have been dropped meanwhile, and the state is
// looked at once more.
func (c *client) read(m *Member, op *operation, ok bool, end func()) {
	switch {
	case op.ended:
	case !ok:
		c.w.history.Fail(op.id)
		end()
	case m.sick(): // whoever reads the state finds out
		m.checkState()
		c.w.history.Fail(op.id)
		end()
	default:
		v := m.machine.values[op.Key]
		m.resolve(v.text, func(text string, err error) {
			if err == nil {
				c.answered(m, op, v, text)
				end()
				return
			}
			c.w.tracef("client %d reads at %s: %s: %v", c.number, m.id, op.Key, err)
			m.later(c.w.set.Heartbeat, func() { c.read(m, op, true, end) })
		})
	}
}

func (c *client) answered(m *Member, op *operation, v value, text string) {
	if op.ended {
		return
	}
	c.seen, c.raw, c.key = text, v.text, op.Key
	c.w.tracef("client %d reads at %s: %s = %q", c.number, m.id, op.Key, text)
	c.w.events.Reads++
	c.w.history.End(op.id, int64(c.w.now), text, v.found, v.version)
}

// wrote judges an answer: a success must have taken effect, a certain failure must not.
func (c *client) wrote(op *operation, number int, result any, err error) {
	w := c.w
	if err != nil {
		w.tracef("client %d is refused %d: %v", c.number, number, err)
		if !errors.Is(err, member.ErrMaybeCommitted) && !errors.Is(err, member.ErrResultUnknown) {
			op.refused = err
			w.events.Refused++
			w.judgeRefused(op, number)
		}
		return
	}
	if !op.effective {
		w.violate(0, fmt.Errorf("command %d was acknowledged without having taken effect", number))
		return
	}
	w.tracef("client %d has %d done: %v", c.number, number, result)
	w.acked++
	w.ackedAt = max(w.ackedAt, op.position)
	if w.events.Elections > op.elections {
		w.events.Failovers++
	}
	a := result.(answer)
	if a != op.answer {
		w.violate(0, fmt.Errorf("command %d was answered by %v; it took effect with %v", number, a, op.answer))
	}
	if !op.ended {
		w.history.End(op.id, int64(w.now), "", a.done, a.version)
		w.chase(op.Key)
	}
}

// applied notes that some member applied a command. It must come after all that was
// acknowledged before it was asked for, whichever instances they went through (N6).
func (w *World) applied(number int, at protocol.Position, a answer) {
	op := w.ops[number]
	if op.effective {
		return
	}
	op.effective, op.answer, op.tookEffect, op.position = true, a, w.now, at
	w.judgeRefused(op, number)
	if at <= op.after {
		w.violate(0, fmt.Errorf("N6: command %d took effect at %d; when it was asked for %d was acknowledged", number, at, op.after))
	}
}

func (w *World) judgeRefused(op *operation, number int) {
	if op.effective && op.refused != nil {
		w.violate(0, fmt.Errorf("command %d took effect and was answered by: %w", number, op.refused))
	}
}

// resolve tells the history what became of the operations that got no answer: the world
// knows. One that took effect did so by the time it was first applied; the others never
// will, for the run is over.
func (w *World) resolve() []check.Operation {
	for _, op := range w.ops {
		switch {
		case op.Kind == check.Get:
		case w.history.Operation(op.id).Outcome == check.Unknown && op.effective:
			w.events.Unknown++
			w.history.End(op.id, int64(op.tookEffect), "", op.answer.done, op.answer.version)
		case !op.effective:
			w.history.Fail(op.id)
		}
	}
	return w.history.History()
}

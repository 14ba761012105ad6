package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

var (
	writesAnsweredEarly    = count.New("writes_answered_before_they_are_applied", "writes answered early", count.Staged)
	readsAnswered          = count.New("reads", "reads")
	readsAtReplacedLeaders = count.New("reads_asked_of_a_replaced_leader", "reads asked of a replaced leader")
	writesRefused          = count.New("writes_refused", "writes refused")
	writesUnknown          = count.New("writes_unknown", "writes unknown")
	writesAfterFailover    = count.New("writes_acknowledged_after_a_change_of_leader", "failovers of a write")
	writesWithBody         = count.New("writes_with_a_body", "writes with a body")
)

// operation is one operation of a client, with what only the world knows about it.
type operation struct {
	check.Operation
	id    int // in the history
	ended bool
	// tookEffect is when its command was applied for the first time; answer is the result of that.
	tookEffect time.Duration
	effective  bool
	answer     machine.Answer
	// position is where the command was applied; after is the last position that was acknowledged
	// when the client asked.
	position, after protocol.Position
	// elections is how many elections there had been when the client asked.
	elections int
	// refused is an error that says for certain that the command takes no effect. It must take
	// none.
	refused error
	// err is what the client was told.
	err error
	// told says that the client was told that the command took effect, or that it will, without a
	// result.
	told bool
	// body is the value, where it travels as a body. expect is what a Swap expects, with tokens for
	// bodies, as state machines have it.
	body   []byte
	expect string
	// number is the command's. before is the command that was proposed before it by a client that
	// does not wait.
	number int
	before *operation
	// ticket is the command's at the member that was asked. withdrawn says that it was withdrawn.
	ticket    intake.Ticket
	withdrawn bool
	// follows are the operations whose tokens the client gave with this one: it takes effect after them.
	follows []*operation
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
	// pipelines: the client proposes without waiting. pipe is how it does that at present.
	pipelines bool
	pipe      *pipe
}

// openClients starts the clients.
func (w *World) openClients() {
	for i := range w.set.Clients {
		c := &client{w: w, number: i, manner: w.manner(), home: protocol.MemberID(1 + w.Pick(w.set.Nodes))}
		c.pipelines = w.From(pipeClients).Yes(w.set.Load.Pipes)
		w.After(w.Between(0, w.set.Election), c.next)
	}
}

// next begins the next operation, or several at once. It begins none once there were enough.
func (c *client) next() {
	w := c.w
	if w.calm || len(w.ops) >= w.set.Operations {
		return
	}
	m := c.chooses()
	if m == nil {
		w.After(w.set.Heartbeat, c.next)
		return
	}
	open := 1
	if w.Chance(w.set.Load.Bursts) {
		open += w.Pick(w.set.Load.Burst)
	}
	if c.pipelines {
		open += w.From(pipeClients).Below(pipeline)
	}
	ended := func() {
		if open--; open == 0 {
			w.After(w.Between(0, w.set.Think), c.next)
		}
	}
	for range open {
		c.perform(m, c.draw(len(w.ops)), w.set.Patience, ended)
	}
}

func (c *client) draw(number int) *operation {
	w := c.w
	op := &operation{Operation: check.Operation{Client: c.number, Kind: check.Append, Key: w.drawKey(), Value: fmt.Sprintf("%d,", number)}}
	switch x := w.Rand.Float64(); {
	case w.Chance(w.set.Reads):
		op.Kind, op.Value = check.Get, ""
	case x < 0.02:
		op.Kind, op.Value = check.Delete, ""
	case x < 0.10 && c.seen != "":
		op.Kind, op.Key, op.Expect, op.expect = check.Swap, c.key, c.seen, c.raw
	case w.Chance(w.set.Load.Overwrite):
		op.Kind = check.Put
	}
	if op.Value != "" && w.Chance(w.set.Bodies.Share) {
		op.carry(number, w.drawBody())
	}
	return op
}

// drawKey draws a key: the first one, which many clients use, or any.
func (w *World) drawKey() string {
	if w.Chance(w.set.Load.Hot) {
		return machine.KeyName(0)
	}
	return machine.KeyName(w.Pick(w.set.Keys))
}

// carry gives the operation a value that travels as a body.
func (op *operation) carry(number int, body []byte) {
	op.body = body
	op.Value = spelled(number, body)
}

// spelled is how a body appears in the history.
func spelled(number int, body []byte) string {
	return fmt.Sprintf("%d:%d:%08x,", number, len(body), protocol.Digest(body))
}

// command is how the operation appears in the log.
func (op *operation) command(number, padding int) []byte {
	short := op.Operation
	short.Expect = op.expect
	if op.body != nil {
		short.Value = machine.Token(number)
	}
	return machine.Command(number, short, padding)
}

// perform sends an operation to a member. It calls then when the operation has ended, or after
// timeout.
func (c *client) perform(m *Member, op *operation, timeout time.Duration, then func()) {
	w := c.w
	number := len(w.ops)
	op.Call, op.elections, op.after = int64(w.Now()), w.Events.Of(electionsWon), w.ackedAt[w.orders.Of(op.Key)]
	op.id, op.number = w.history.Begin(op.Operation), number
	w.ops = append(w.ops, op)
	w.Tracef("client %d asks %s: %d %s %s %s", c.number, m.id, number, op.Kind, op.Key, op.Value)
	end := func() {
		if !op.ended {
			op.ended = true
			w.After(0, then) // never inside what the member is doing
		}
	}
	w.After(timeout, end)
	if op.Kind == check.Get {
		if m.replaced() {
			w.Count(readsAtReplacedLeaders)
		}
		m.Read(w.drawBarrier(), func(ok bool) { c.read(m, op, ok, end) })
		return
	}
	padding := 0
	if !w.calm {
		padding = w.Pick(w.set.Padding + 1)
	}
	if op.body != nil {
		w.Count(writesWithBody)
	}
	c.propose(m, op, op.command(number, padding), func(result any, err error) {
		op.err = err
		m.judgeTurnedAway(number, err)
		c.wrote(op, number, result, err)
		end()
	})
	c.hurry(m, op, end)
}

// read answers with the state as it is when the read is allowed. First it makes the bodies in the
// value whole. If that fails, they may have been dropped meanwhile, and it reads the state again.
func (c *client) read(m *Member, op *operation, ok bool, end func()) {
	switch {
	case op.ended:
	case !ok:
		c.w.history.Fail(op.id)
		end()
	case m.sick(): // whoever reads a damaged state finds out
		m.checkState()
		c.w.history.Fail(op.id)
		end()
	default:
		v := m.machines.Of(op.Key).Value(op.Key)
		m.resolve(v.Text, func(text string, err error) {
			if err == nil {
				c.answered(m, op, v, text)
				end()
				return
			}
			c.w.Tracef("client %d reads at %s: %s: %v", c.number, m.id, op.Key, err)
			m.later(c.w.set.Heartbeat, func() { c.read(m, op, true, end) })
		})
	}
}

func (c *client) answered(m *Member, op *operation, v machine.Value, text string) {
	if op.ended {
		return
	}
	c.seen, c.raw, c.key = text, v.Text, op.Key
	c.w.Tracef("client %d reads at %s: %s = %q", c.number, m.id, op.Key, text)
	c.w.Count(readsAnswered)
	c.w.history.End(op.id, int64(c.w.Now()), text, v.Found, v.Version)
}

// wrote judges an answer. After a success the command must have taken effect. After a certain
// failure it must not.
func (c *client) wrote(op *operation, number int, result any, err error) {
	w := c.w
	if err != nil {
		w.Tracef("client %d is refused %d: %v", c.number, number, err)
		if errors.As(err, new(*intake.BrokenError)) || !errors.Is(err, member.ErrMaybeCommitted) && !errors.Is(err, member.ErrResultUnknown) {
			op.refused = err
			w.Count(writesRefused)
			w.judgeRefused(op, number)
		}
		op.told = op.told || errors.Is(err, member.ErrResultUnknown)
		return
	}
	if _, early := result.(*intake.Accepted); early {
		w.Tracef("client %d has %d accepted", c.number, number)
		op.told = true
		w.Count(writesAnsweredEarly)
		w.noteToken(op, result.(*intake.Accepted).Token)
		return
	}
	if !op.effective {
		w.Violate(0, fmt.Errorf("command %d was acknowledged without having taken effect", number))
		return
	}
	w.Tracef("client %d has %d done: %v", c.number, number, result)
	w.acked++
	group := w.orders.Of(op.Key)
	w.ackedAt[group] = max(w.ackedAt[group], op.position)
	if w.Events.Of(electionsWon) > op.elections {
		w.Count(writesAfterFailover)
	}
	a := result.(machine.Answer)
	if a != op.answer {
		w.Violate(0, fmt.Errorf("command %d was answered by %v; it took effect with %v", number, a, op.answer))
	}
	if !op.ended {
		w.history.End(op.id, int64(w.Now()), "", a.Done, a.Version)
		w.chase(op.Key)
	}
}

// applied notes that some member applied a command. Its position must come after all that was
// acknowledged before the client asked, whichever instances the commands went through (N6). In a keyed order
// that holds in each group.
func (w *World) applied(number int, at protocol.Position, a machine.Answer) {
	op := w.ops[number]
	if op.effective {
		return
	}
	op.effective, op.answer, op.tookEffect, op.position = true, a, w.Now(), at
	w.judgeRefused(op, number)
	w.judgePiped(op, number)
	w.judgeFollows(op)
	if at <= op.after {
		w.Violate(0, fmt.Errorf("N6: command %d took effect at %d; when it was asked for %d was acknowledged", number, at, op.after))
	}
}

func (w *World) judgeRefused(op *operation, number int) {
	if op.effective && op.refused != nil {
		w.Violate(0, fmt.Errorf("command %d took effect and was answered by: %w", number, op.refused))
	}
}

// judgeTold judges, when all is applied, that what was told to have taken effect did.
func (w *World) judgeTold() error {
	for _, op := range w.ops {
		if op.told && !op.effective {
			return fmt.Errorf("command %d took no effect, and the client was told that it did or will", op.number)
		}
	}
	return nil
}

// resolve completes the history with the operations that got no answer, because the world knows
// what became of them. One that took effect did so when it was first applied. The others never
// will, because the run is over.
func (w *World) resolve() []check.Operation {
	for _, op := range w.ops {
		switch {
		case op.Kind == check.Get:
		case w.history.Operation(op.id).Outcome == check.Unknown && op.effective:
			w.Count(writesUnknown)
			w.history.End(op.id, int64(op.tookEffect), "", op.answer.Done, op.answer.Version)
		case !op.effective:
			w.history.Fail(op.id)
		}
	}
	return w.history.History()
}

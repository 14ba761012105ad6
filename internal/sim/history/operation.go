package history

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// Operation is one operation of a client, with facts that only the world knows.
type Operation struct {
	check.Operation
	id    int // in the history of operations that is judged
	Ended bool
	// tookEffect is the time at which its command was first applied; answer is its result.
	tookEffect time.Duration
	Effective  bool
	Answer     machine.Answer
	// Position is the position at which the command was applied; after is the last acknowledged position at the request.
	Position, after protocol.Position
	// Elections is the number of elections before the request.
	Elections int
	// refused is an error that excludes any effect of the command. It must have none.
	refused error
	// Err is the error that the client got.
	Err error
	// Told: the client was told, without a result, that the command took effect or will.
	Told bool
	// Body is the value, if it is sent as a body. Raw is the expected value of a Swap, with tokens for bodies, as state
	// machines have it.
	Body []byte
	Raw  string
	// Number is the command's number. Before is the previous command of a client that does not wait for responses.
	Number int
	Before *Operation
	// Ticket is the command's ticket at the asked member. Withdrawn: it was withdrawn.
	Ticket    intake.Ticket
	Withdrawn bool
	// Follows are the operations whose tokens the client passed with this one: it takes effect after them.
	Follows []*Operation
}

// Carry gives the operation a value that is sent as a body.
func (op *Operation) Carry(number int, body []byte) {
	op.Body = body
	op.Value = Spelled(number, body)
}

// Spelled returns a body as it appears in the history.
func Spelled(number int, body []byte) string {
	return fmt.Sprintf("%d:%d:%08x,", number, len(body), protocol.Digest(body))
}

// Command returns the operation as it appears in the log. It has begun.
func (op *Operation) Command(padding int) []byte {
	short := op.Operation
	short.Expect = op.Raw
	if op.Body != nil {
		short.Value = machine.Token(op.Number)
	}
	return machine.Command(op.Number, short, padding)
}

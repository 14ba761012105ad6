package history

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// Operation is one operation of a client, with what only the world knows about it.
type Operation struct {
	check.Operation
	id    int // in the history of operations that is judged
	Ended bool
	// tookEffect is when its command was applied for the first time; answer is the result of that.
	tookEffect time.Duration
	Effective  bool
	Answer     machine.Answer
	// Position is where the command was applied; after is the last position that was acknowledged
	// when the client asked.
	Position, after protocol.Position
	// Elections is how many elections there had been when the client asked.
	Elections int
	// refused is an error that says for certain that the command takes no effect. It must take
	// none.
	refused error
	// Err is what the client was told.
	Err error
	// Told says that the client was told that the command took effect, or that it will, without a
	// result.
	Told bool
	// Body is the value, where it travels as a body. Raw is what a Swap expects, with tokens for
	// bodies, as state machines have it.
	Body []byte
	Raw  string
	// Number is the command's. Before is the command that was proposed before it by a client that
	// does not wait.
	Number int
	Before *Operation
	// Ticket is the command's at the member that was asked. Withdrawn says that it was withdrawn.
	Ticket    intake.Ticket
	Withdrawn bool
	// Follows are the operations whose tokens the client gave with this one: it takes effect after them.
	Follows []*Operation
}

// Carry gives the operation a value that travels as a body.
func (op *Operation) Carry(number int, body []byte) {
	op.Body = body
	op.Value = Spelled(number, body)
}

// Spelled is how a body appears in the history.
func Spelled(number int, body []byte) string {
	return fmt.Sprintf("%d:%d:%08x,", number, len(body), protocol.Digest(body))
}

// Command is how the operation appears in the log.
func (op *Operation) Command(number, padding int) []byte {
	short := op.Operation
	short.Expect = op.Raw
	if op.Body != nil {
		short.Value = machine.Token(number)
	}
	return machine.Command(number, short, padding)
}

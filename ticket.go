package braid

import "github.com/braidlog/braid/internal/replica"

// Ticket names a command that was proposed with [Node.ProposeTicket], so that it can be withdrawn. Its method is safe for
// concurrent use. The zero Ticket names none.
type Ticket = replica.Ticket

// ProposeTicket is ProposeBodyAsync, or with options ProposeWithAsync, of a command that may be withdrawn with
// [Ticket.Withdraw], as Propose does when its context ends. If it returns an error, the command was refused and nothing
// happened.
func (n *Node) ProposeTicket(command, body []byte, o ProposeOptions, done func(result any, err error)) (Ticket, error) {
	return n.r.ProposeTicket(command, body, &o, done)
}

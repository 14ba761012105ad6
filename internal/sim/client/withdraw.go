package client

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
)

// Some clients wait only briefly and then withdraw their command. If the member reports that the command has not left
// it, the command must never take effect.

// withdrawnWrites draws the withdrawn commands, and the times.
var withdrawnWrites = draw.New("withdrawn writes")

var writesWithdrawn = count.New("writes_withdrawn", "writes withdrawn")

// hurry withdraws the command of an operation after a delay, if there is no response by then.
func (c *Client) hurry(m *node.Member, op *history.Operation, end func()) {
	w := c.w
	if w.Calm || w.own.Load.Withdraw == 0 || !w.From(withdrawnWrites).Yes(w.own.Load.Withdraw) {
		return
	}
	most := w.Set.Heartbeat
	if w.From(withdrawnWrites).Yes(0.5) {
		most = w.Set.Election
	}
	m.Later(time.Duration(w.From(withdrawnWrites).Share()*float64(most)), func() {
		if op.Ended || op.Err != nil || op.Told {
			return
		}
		m.Withdraw(op.Ticket, func() {
			op.Withdrawn = true
			w.Count(writesWithdrawn)
			op.Err = member.ErrNotSent
			c.wrote(op, nil, op.Err)
			end()
		})
	})
}

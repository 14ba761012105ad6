package fault

import (
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
)

// Ask asks a member for an operation, as an operator does. then is called with the result, or with node.ErrWithdrawn
// when patience has elapsed.
func (w *World) Ask(m *node.Member, op cluster.Operation, patience time.Duration, then func(error)) {
	w.Count(node.OperationsAsked)
	asked, ended := judge.Asked{By: m.ID, At: w.Now()}, false
	if m.Up {
		asked.First = m.InForce[0].Instance
	}
	m.Operate(op, patience, func(q *cluster.Request, err error) {
		if ended {
			return
		}
		ended = true
		w.Tracef("%s   answers the operator: %s: %v", m.ID, op.Kind, err)
		if err == nil {
			w.Count(node.OperationsDone)
		}
		if err == nil || judge.ClaimsUnknown(&q.Op, err) {
			w.Violate(m.ID, w.Court.Done(asked, &q.Op))
		}
		then(err)
	})
	w.After(patience+w.Set.Tick, func() { // for a member that has stopped
		if !ended {
			ended = true
			then(node.ErrWithdrawn)
		}
	})
}

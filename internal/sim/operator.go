package sim

import (
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
)

// ask is an operator who asks a member for an operation, and waits for a while. then is called when
// the operator hears what became of it, or waits no longer.
func (w *World) ask(m *Member, op cluster.Operation, patience time.Duration, then func(error)) {
	w.Count(operationsAsked)
	began, ended := w.Now(), false
	m.operate(op, patience, func(q *cluster.Request, err error) {
		if ended {
			return
		}
		ended = true
		w.Tracef("%s   answers the operator: %s: %v", m.id, op.Kind, err)
		if err == nil {
			w.Count(operationsDone)
			w.Violate(m.id, w.court.Done(m.id, &q.Op, began))
		}
		then(err)
	})
	w.After(patience+w.set.Tick, func() { // for a member that has stopped
		if !ended {
			ended = true
			then(errWithdrawn)
		}
	})
}

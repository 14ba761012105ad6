package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// What operators ask of members, and what members do about it, by the rules of production. Links
// carry the requests and the answers. What was answered as done is judged.

var (
	operationsAsked = count.New("operations_asked_for", "operations asked for")
	operationsDone  = count.New("operations_answered_as_done", "operations done")
)

// errWithdrawn says that the operator does not want the operation any more.
var errWithdrawn = errors.New("the operator wants it no more")

// view is what the member knows of itself.
func (m *Member) view() *cluster.MemberView {
	return &cluster.MemberView{Now: m.clock(), Instances: m.statuses(), Applied: m.progress}
}

// statuses is the status of each instance in force, as it was made known last.
func (m *Member) statuses() (all []*protocol.Status) {
	for _, s := range m.inForce {
		all = append(all, s.status)
	}
	return all
}

// operate has an operation carried out by the leader, and waits until it shows here.
func (m *Member) operate(op cluster.Operation, patience time.Duration, answered func(*cluster.Request, error)) {
	m.whenAwake(func() {
		q, waits := cluster.NewRequest(m.operations.Config, op, m.view()), true
		answer := func(err error) {
			if waits {
				waits = false
				q.End(m.view())
				answered(q, err)
			}
		}
		m.later(patience, func() { answer(q.Unanswered(errWithdrawn)) })
		var look func()
		look = func() {
			if !waits {
				return
			}
			switch leader, done, err := q.Next(m.view()); {
			case done:
				answer(err)
			case leader == 0:
				m.later(m.own.Heartbeat/4, look)
			default:
				m.executeAt(leader, &q.Op, patience, func(err error) {
					q.Answered(m.view(), err)
					look()
				})
			}
		}
		look()
	})
}

// executeAt has the leader carry an operation out. The request or its answer may be lost.
func (m *Member) executeAt(leader protocol.MemberID, op *cluster.Operation, patience time.Duration, answered func(error)) {
	if leader == m.id {
		m.execute(*op, patience, answered)
		return
	}
	w, o := m.w, m.w.member(leader)
	if w.severed(m, leader) {
		return
	}
	request, err := op.Encode()
	if err != nil {
		w.Violate(m.id, err)
		return
	}
	w.convey(m, o, func() {
		op, ok, err := cluster.DecodeOperation(request)
		if err != nil || !ok {
			w.Violate(o.id, fmt.Errorf("request %q is no operation: %w", request, err))
			return
		}
		o.execute(op, patience, func(err error) {
			answer, text := cluster.EncodeAnswer(err)
			w.convey(o, m, func() {
				if err := text; err != nil {
					answered(errors.New(err.Error())) // its type is lost on the way
					return
				}
				answered(cluster.DecodeAnswer(op.Kind.String(), answer))
			})
		})
	})
}

// convey lets do run at another member, as a request or an answer on a link does.
func (w *environment) convey(from, to *Member, do func()) {
	if w.net.Link(from.id, to.id).Cut {
		return
	}
	life := from.life
	w.After(w.trip(from.id, to.id), func() {
		if to.up && from.up && w.linked(from, life, to) && to.up {
			to.whenAwake(do)
		}
	})
}

// execute carries an operation out at this member.
func (m *Member) execute(op cluster.Operation, patience time.Duration, answered func(error)) {
	if op.Kind == cluster.ChangeMembers && !m.w.observer.wouldAsk(m, op.Changes) {
		answered(errWithdrawn)
		return
	}
	e, until := m.operations.Begin(op), m.w.Now()+patience
	m.executing = append(m.executing, e)
	var look func()
	look = func() {
		step := e.Next(m.view())
		m.tell(step.Tell)
		if step.Confirm {
			m.Read(false, func(ok bool) {
				err := error(nil)
				if !ok {
					err = member.ErrReadTimeout
				}
				e.Confirmed(err)
				look()
			})
			return
		}
		if step.Stay != 0 {
			o := m.w.member(step.Stay)
			m.w.convey(m, o, func() { o.inForce[0].do(o.inForce[0].hosted.Stay) })
		}
		if !step.Done && m.w.Now() < until {
			m.later(m.own.Heartbeat/4, look)
			return
		}
		m.executing = slices.DeleteFunc(m.executing, func(x *cluster.Execution) bool { return x == e })
		if m.operations.End(e, m.view()); !step.Done {
			step.Err = op.Unanswered(errWithdrawn)
		}
		answered(step.Err)
	}
	look()
}

// tell gives instances inputs.
func (m *Member) tell(inputs []member.InstanceInput) {
	for _, in := range inputs {
		if s := m.of(in.Instance); s != nil {
			s.step(in.Input)
		}
	}
}

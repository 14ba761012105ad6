package node

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

// Operations of operators, executed by the rules of production. Links carry the requests and the responses.
// Operations that are reported as done are judged.

var (
	OperationsAsked = count.New("operations_asked_for", "operations asked for")
	OperationsDone  = count.New("operations_answered_as_done", "operations done")
)

// ErrWithdrawn reports that the operator has withdrawn the operation.
var ErrWithdrawn = errors.New("the operator wants it no more")

var errDeserted = errors.New("the member that was asked is not the leader any more")

// view returns the member's view of itself.
func (m *Member) view() *cluster.MemberView {
	return &cluster.MemberView{Now: m.Clock(), Instances: m.Statuses(), Applied: m.Progress, Version: m.version,
		Drained: m.Drained()}
}

// version is what is known of another member's version: all know profiles, and seals. In production links show it, and
// a member without one counts as earlier until the log has a profile, or a seal.
func (m *Member) version(protocol.MemberID) cluster.Version { return cluster.VersionSwitches }

// Statuses returns the last published status of each active instance.
func (r *Running) Statuses() (all []*protocol.Status) {
	for _, s := range r.InForce {
		all = append(all, s.status)
	}
	return all
}

// Operate has an operation executed by the leader, and waits until its effect is visible here.
func (m *Member) Operate(op cluster.Operation, patience time.Duration, answered func(*cluster.Request, error)) {
	m.WhenAwake(func() {
		q, waits, asked := cluster.NewRequest(m.Operations.Config, op, m.view()), true, 0
		answer := func(err error) {
			if waits {
				waits = false
				q.End(m.view())
				answered(q, err)
			}
		}
		m.Later(patience, func() { answer(q.Unanswered(ErrWithdrawn)) })
		var look func()
		look = func() {
			if !waits {
				return
			}
			switch leader, done, err := q.Next(m.view()); {
			case done:
				answer(err)
			case leader == 0:
				m.Later(m.Own.Heartbeat/4, look)
			default:
				asked++
				now := asked
				m.executeAt(leader, &q.Op, patience, func(err error) {
					if now != asked {
						return // no one waits for it any more
					}
					q.Answered(m.view(), err)
					look()
				})
				if leader != m.ID {
					m.desert(q, func() bool { return waits && now == asked }, func() {
						asked++
						q.Lost(m.view(), errDeserted)
						look()
					})
				}
			}
		}
		look()
	})
}

// desert looks from time to time whether the member that was asked leads, and calls lost when it does not any more.
func (m *Member) desert(q *cluster.Request, waits func() bool, lost func()) {
	m.Later(m.Own.Heartbeat, func() {
		switch {
		case !waits():
		case q.Deserted(m.view()):
			lost()
		default:
			m.desert(q, waits, lost)
		}
	})
}

// executeAt has the leader execute an operation. The request or the response may be lost.
func (m *Member) executeAt(leader protocol.MemberID, op *cluster.Operation, patience time.Duration, answered func(error)) {
	if leader == m.ID {
		m.Execute(*op, patience, answered)
		return
	}
	w, o := m.Env, m.Env.Member(leader)
	if w.severed(m, leader) {
		return
	}
	request, err := op.Encode()
	if err != nil {
		w.Violate(m.ID, err)
		return
	}
	w.convey(m, o, func() {
		op, ok, err := cluster.DecodeOperation(request)
		if err != nil || !ok {
			w.Violate(o.ID, fmt.Errorf("request %q is no operation: %w", request, err))
			return
		}
		o.Execute(op, patience, func(err error) {
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

// convey runs do at another member, like a request or response on a link.
func (w *Environment) convey(from, to *Member, do func()) {
	if w.Net.Link(from.ID, to.ID).Cut {
		return
	}
	life := from.Life
	w.After(w.Trip(from.ID, to.ID), func() {
		if to.Up && from.Up && w.linked(from, life, to) && to.Up {
			to.WhenAwake(do)
		}
	})
}

// Execute executes an operation at this member.
func (m *Member) Execute(op cluster.Operation, patience time.Duration, answered func(error)) {
	if op.Kind == cluster.ChangeMembers && !m.Env.Observer.WouldAsk(m, op.Changes) {
		answered(ErrWithdrawn)
		return
	}
	e, until := m.Operations.Begin(op), m.Env.Now()+patience
	m.Executing = append(m.Executing, e)
	var look func()
	look = func() {
		step := e.Next(m.view())
		m.Tell(step.Tell)
		if step.Confirm {
			m.Confirm(func(ok bool) {
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
			o := m.Env.Member(step.Stay)
			m.Env.convey(m, o, func() { o.InForce[0].Do(o.InForce[0].Hosted.Stay) })
		}
		if !step.Done && m.Env.Now() < until {
			m.Later(m.Own.Heartbeat/4, look)
			return
		}
		m.Executing = slices.DeleteFunc(m.Executing, func(x *cluster.Execution) bool { return x == e })
		if m.Operations.End(e, m.view()); !step.Done {
			step.Err = op.Unanswered(ErrWithdrawn)
		}
		answered(step.Err)
	}
	look()
}

// Tell passes inputs to instances.
func (m *Member) Tell(inputs []member.InstanceInput) {
	for _, in := range inputs {
		if s := m.Of(in.Instance); s != nil {
			s.Step(in.Input)
		}
	}
}

package replica

import (
	"context"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// instancesHost gives lifecycle.Instances what it needs of the member.
type instancesHost struct{ r *Replica }

// Make implements lifecycle.InstancesHost, as the methods below do.
func (h instancesHost) Make(log member.InstanceLog) (*eventLoop, error) { return h.r.newLoop(log) }

func (h instancesHost) Grow() error { return h.r.dir.Grow() }

func (h instancesHost) Submit(records []wal.Record) { h.r.writer.Submit(records, h.r.begun) }

func (h instancesHost) Known(since protocol.Position, ids []protocol.InstanceID, inForce, staying []*eventLoop) {
	before := h.r.loops.Swap(&eventLoops{all: inForce, ids: ids, since: since, staying: staying})
	if first := inForce[0]; before == nil || before.all[0] != first {
		h.r.proposer.follow(first.program.Proposing)
	}
}

func (h instancesHost) First(l *eventLoop) protocol.MemberID { return instance.First(l.status.Load()) }

func (h instancesHost) Close(l *eventLoop) { l.do(l.hosted.Close) }

func (h instancesHost) Run(l *eventLoop) {
	h.r.done.Add(1)
	go l.run(true)
}

func (h instancesHost) Retire(l *eventLoop) {
	l.do(func() {
		l.retire()
		h.r.router.forget(l.id)
	})
}

func (h instancesHost) Deliver(l *eventLoop, f protocol.Frame) { h.r.deliver(l, f) }

func (h instancesHost) Kept(change func(*body.Kept)) { h.r.bodies.Kept(change) }

// carryOut carries out the plans that were found in what is committed. The apply loop waits for it where
// it comes to a plan itself. Otherwise it runs on a goroutine of its own.
func (r *Replica) carryOut() error {
	r.imu.Lock()
	defer r.imu.Unlock()
	for _, v := range r.apply.voidSeals() {
		if l := r.find(v.Instance); l != nil {
			l.input(protocol.Sealed{Index: v.Index}, 0)
		}
	}
	for {
		plan := r.apply.nextPlan()
		if plan == nil || r.ctx.Err() != nil {
			return nil
		}
		if changed, err := r.instances.Carry(plan); err != nil {
			return err
		} else if changed {
			r.carried(plan)
		}
	}
}

// carried lets others know that a plan is carried out.
func (r *Replica) carried(plan *apply.PlannedAt) {
	r.log.Info("other instances make the log", "instances", plan.At.Instances(), "position", plan.At.Position,
		"sealed", plan.Seals())
	r.relink(r.now())
	r.changed()
}

// closed says that an instance is closed. The last one of those that a seal ends lets the others begin.
func (r *Replica) closed(id protocol.InstanceID) {
	r.imu.Lock()
	defer r.imu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	plan, err := r.instances.Closed(id)
	if err != nil {
		r.fail(err)
	} else if plan != nil {
		r.carried(plan)
	}
}

// offerTo offers a snapshot to a member that takes part in an instance which a seal has ended.
func (r *Replica) offerTo(to protocol.MemberID, id protocol.InstanceID) {
	r.exchange.do(func(m *snapshot.StateExchange) { m.Missing(to, id) })
}

// planned has plans carried out. Event loops and the apply loop call it.
func (r *Replica) planned() {
	r.spawn(func(context.Context) {
		if err := r.carryOut(); err != nil {
			r.fail(err)
		}
	})
}

// begun is called by the log's goroutine when the beginnings of new instances are durable.
func (r *Replica) begun(err error) {
	if err != nil {
		r.fail(err)
		return
	}
	r.imu.Lock()
	r.instances.Begun()
	r.imu.Unlock()
	r.apply.push(apply.ApplyItem{Begun: true})
}

// askAgain has instances asked again for the read indexes of groups: see intake.ReadGroup.Again.
func (r *Replica) askAgain(groups []*intake.ReadGroup) {
	first := r.first()
	for _, g := range groups {
		first.do(func() {
			if first.beginRead(g) {
				first.hosted.Read(g)
			}
		})
	}
}

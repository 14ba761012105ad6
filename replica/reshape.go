package replica

import (
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// instancesHost gives member.Instances what it needs of the member.
type instancesHost struct{ r *Replica }

// Make implements member.InstancesHost, as the methods below do.
func (h instancesHost) Make(log member.InstanceLog) (*eventLoop, error) { return h.r.newLoop(log) }

func (h instancesHost) Submit(records []wal.Record) { h.r.writer.Submit(records, h.r.begun) }

func (h instancesHost) Known(ids []protocol.InstanceID, inForce, staying []*eventLoop) {
	h.r.loops.Store(&eventLoops{all: inForce, ids: ids, staying: staying})
}

func (h instancesHost) Run(l *eventLoop) {
	h.r.done.Add(1)
	go l.run()
}

func (h instancesHost) Retire(l *eventLoop) {
	l.do(func() {
		l.hosted.Retire()
		h.r.router.forget(l.id)
	})
}

func (h instancesHost) Deliver(l *eventLoop, m *protocol.Message, bytes int) {
	if !l.input(m, bytes) {
		h.r.metrics.dropped.Add(1)
	}
}

func (h instancesHost) Kept(change func(*member.Kept)) { h.r.bodies.Kept(change) }

// reshaped begins and retires instances, as the global log says at this place. It runs in the apply
// loop.
func (r *Replica) reshaped(a *member.Applier) (begun bool, err error) {
	r.imu.Lock()
	changed, begun, err := r.instances.Reshape(a)
	r.imu.Unlock()
	if changed {
		cursor := a.Cursor()
		r.log.Info("the log is woven from other instances", "instances", cursor.Instances(), "position", cursor.Position)
		r.relink(r.now())
		r.changed()
	}
	return begun, err
}

// begun is called by the log's goroutine when the beginnings of new instances are durable.
func (r *Replica) begun(err error) {
	if err != nil {
		r.fail(err)
		return
	}
	r.apply.push(member.ApplyItem{Begun: true})
}

// askAgain has read points asked for again, because other instances are in force now.
func (r *Replica) askAgain(groups []*member.ReadGroup) {
	first := r.first()
	for _, g := range groups {
		first.do(func() { first.hosted.BeginRead(g) })
	}
}

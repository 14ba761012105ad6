package replica

import (
	"context"
	"fmt"

	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/protocol"
)

// carry carries out what a turn of the instance wants, in the order of the fields.
func (l *eventLoop) carry(t *instance.Turn) {
	if t.AskMissing != 0 {
		l.r.askMissing(t.AskMissing, l.id)
	}
	if t.Behind != 0 {
		l.r.offerTo(t.Behind, l.id)
	}
	if t.Install != nil {
		l.r.bodies.installing(l.kept, t.Install.Index)
		l.r.apply.pushInstall(l.id, t.Install)
	}
	if t.Forgot != nil {
		l.r.fail(l.r.dir.Condemn(t.Forgot))
	}
	if t.Stop != nil {
		l.r.fail(t.Stop)
	}
	for _, m := range t.Send {
		l.send(m)
	}
	if t.Seq > 0 {
		l.submit(t.Persist, t.Seq)
	}
	for _, b := range t.Accepted {
		b.Accept(l.r.now())
	}
	if len(t.Commit.Entries) > 0 {
		l.commit(t.Commit)
	}
	for _, f := range t.Failed {
		f.Batch.Fail(f.Err)
	}
	l.carryReads(t)
	if len(t.Want) > 0 {
		l.r.bodies.want(t.Want)
	}
	for _, refused := range t.Refused {
		l.r.operations.refused(refused)
	}
	if t.Suspect != 0 {
		l.suspect(t.Suspect)
	}
	for _, s := range t.Snapshots {
		l.r.exchange.do(func(m *snapshot.StateExchange) { m.Ask(s.To, s.Offer) })
	}
	l.publish(t)
	l.carryEnd(t)
}

// carryEnd carries out what the end of a turn brings.
func (l *eventLoop) carryEnd(t *instance.Turn) {
	if t.Closed {
		l.r.spawn(func(context.Context) { l.r.closed(l.id) })
	}
	if t.Departed != nil {
		l.r.fail(t.Departed)
	}
	if t.Tend {
		l.r.exchange.do(func(m *snapshot.StateExchange) { m.Tend(t.Status) })
		if l.r.lingers() {
			l.r.relink(l.r.now())
		}
	}
	if t.WantSnapshot {
		l.r.apply.push(apply.ApplyItem{Due: true})
	}
	l.cut(t.Cut)
}

// send sends a message, or has the instance know why it is not sent.
func (l *eventLoop) send(m *protocol.Message) {
	sent, err := l.sender.Send(m)
	switch {
	case err != nil:
		l.unsent(m, err)
	case !sent:
		l.input(protocol.Unreachable{Member: m.To}, 0)
	}
}

// unsent carries out what follows from a message that cannot be read here.
func (l *eventLoop) unsent(m *protocol.Message, err error) {
	at, _ := l.r.apply.at()
	u := l.hosted.Unsent(m, err, at.Point(l.id).Index)
	if u.Harmed != nil {
		l.r.harm(u.Harmed)
	}
	log := l.r.log.With("instance", l.id, "member", m.To, "err", err)
	switch u.Remedy {
	case instance.RemedySnapshot:
		log.Error("entries to send cannot be read from the log; the member is sent a snapshot instead")
	case instance.RemedyHandOver:
		log.Error("entries to send cannot be read from the log; another member should lead")
	case instance.RemedyStop, instance.RemedyWait:
		log.Info("what is to be sent cannot be read")
	}
	if u.Fail != nil {
		l.r.fail(u.Fail)
	}
	for _, in := range u.Inputs {
		l.input(in, 0)
	}
}

// Frame implements instance.Links.
func (l *eventLoop) Frame(m *protocol.Message) ([][]byte, error) { return l.r.framer.Frame(m) }

// Transmit implements instance.Links. A message does not wait while there are several instances, because an instance's
// commit index can be all that the order waits for.
func (l *eventLoop) Transmit(m *protocol.Message, stream uint32, parts [][]byte) bool {
	if m.Lazy && len(l.r.loops.Load().all) == 1 {
		return l.r.links.SendLater(uint64(m.To), stream, parts)
	}
	return l.r.links.Send(uint64(m.To), stream, parts)
}

// cut gives up the log and its bodies up to an entry; 0: nothing.
func (l *eventLoop) cut(at protocol.Index) {
	if at > 0 {
		l.r.bodies.compacted(l.kept, at)
		l.r.writer.Compact(uint32(l.id), uint64(at))
	}
}

func (l *eventLoop) commit(c intake.CommittedEntries) {
	l.noteCommitted(c.Own)
	l.r.bodies.committed(l.kept, c.Entries)
	l.r.metrics.commits.Add(uint64(len(c.Entries)))
	if !l.r.opt.SyncApply {
		l.r.apply.push(apply.ApplyItem{Commit: c})
		return
	}
	applied := make(chan struct{}) // replication waits for the state machine
	l.r.apply.push(apply.ApplyItem{Commit: c, Applied: func() { close(applied) }})
	select {
	case <-applied:
	case <-l.r.stop:
	}
}

// suspect has the other instances take in that a leader has not been heard for too long.
func (l *eventLoop) suspect(leader protocol.MemberID) {
	for _, other := range l.r.all() {
		if other != l {
			other.input(protocol.Suspect{Member: leader}, 0)
		}
	}
}

// askMissing asks a member for a snapshot, because an instance has no leader here.
func (r *Replica) askMissing(to protocol.MemberID, id protocol.InstanceID) {
	r.spawn(func(ctx context.Context) {
		if err := r.ask(ctx, to, "snapshot", fmt.Appendf(nil, "%c%d", askMissing, id)); err != nil {
			r.log.Info("an instance has no leader", "instance", id, "err", err)
		}
	})
}

// publish publishes how the instance stands. The links follow it, also before the member has all its loops; relink is
// called again when it has.
func (l *eventLoop) publish(t *instance.Turn) {
	if t.Merge != nil {
		l.woven.Store(t.Merge)
	}
	if t.Status == nil {
		return
	}
	l.status.Store(t.Status)
	if t.Changed {
		l.r.relink(l.r.now())
		l.r.changed()
	}
}

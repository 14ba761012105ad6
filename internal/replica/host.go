package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// eventLoop implements instance.Host: what an instance needs of the member.

// Now implements instance.Host, as the other methods in this file do.
func (l *eventLoop) Now() time.Duration { return l.r.now() }

func (l *eventLoop) Siblings() instance.Siblings { return l.r.loops.Load() }

func (l *eventLoop) Input(in protocol.Input) { l.input(in, 0) }

func (l *eventLoop) Publish(st *protocol.Status) { l.status.Store(st) }

func (l *eventLoop) NoteWeave(st *instance.WeaveStatus) { l.woven.Store(st) }

func (l *eventLoop) NoteLoad(load instance.Load) {
	packed := uint64(load.Pending) << 2
	if load.Leads {
		packed |= 2
	}
	if load.Led {
		packed |= 1
	}
	if packed != l.load.Load() {
		l.load.Store(packed)
	}
	if round := uint64(load.Round); round != l.round.Load() {
		l.round.Store(round)
	}
}

// Relink may be called before the loops are complete; relink is called again when they are.
func (l *eventLoop) Relink(changed bool) {
	switch {
	case changed:
		l.r.relink(l.r.now())
		l.r.changed()
	case l.r.lingers():
		l.r.relink(l.r.now())
	}
}

func (l *eventLoop) Fail(err error)               { l.r.fail(err) }
func (l *eventLoop) Condemn(f *protocol.Forgot)   { l.r.fail(l.r.dir.Condemn(f)) }
func (l *eventLoop) Refused(r protocol.Rejection) { l.r.operations.refused(r) }

func (l *eventLoop) Waiting() (bytes int, full bool) { return l.r.proposer.waiting(l.id) }
func (l *eventLoop) TakeBatch() *intake.Batch        { return l.r.proposer.take(l.id) }
func (l *eventLoop) Risen() uint64                   { return l.r.router.risen.Load() }

func (l *eventLoop) Weave(t instance.InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	return l.r.router.set(t, wake)
}

func (l *eventLoop) Wanted() order.Slot { return l.r.router.want(l.id) }

func (l *eventLoop) Frame(m *protocol.Message) ([][]byte, error) { return l.r.framer.Frame(m) }

func (l *eventLoop) Transmit(to protocol.MemberID, stream uint32, parts [][]byte) bool {
	return l.r.links.Send(uint64(to), stream, parts)
}

func (l *eventLoop) Unreadable(m *protocol.Message, err error, remedy instance.Remedy) {
	log := l.r.log.With("instance", l.id, "to", m.To, "err", err)
	switch remedy {
	case instance.RemedySnapshot:
		log.Error("entries to send cannot be read from the log; the member is sent a snapshot instead")
	case instance.RemedyHandOver:
		log.Error("entries to send cannot be read from the log; another member should lead")
	case instance.RemedyStop, instance.RemedyWait:
		log.Info("what is to be sent cannot be read")
	}
}

func (l *eventLoop) SendSnapshot(to protocol.MemberID, o *member.SnapshotOffer) {
	l.r.exchange.do(func(m *snapshot.StateExchange) { m.Ask(to, o) })
}

func (l *eventLoop) AskMissing(to protocol.MemberID) {
	l.r.spawn(func(ctx context.Context) {
		if err := l.r.ask(ctx, to, "snapshot", fmt.Appendf(nil, "%c%d", askMissing, l.id)); err != nil {
			l.r.log.Info("an instance has no leader", "instance", l.id, "err", err)
		}
	})
}

func (l *eventLoop) Submit(records []wal.Record, seq uint64) {
	l.r.writer.Submit(records, func(err error) { l.wrote(seq, err) })
}

func (l *eventLoop) CutLog(at protocol.Index) { l.r.writer.Compact(uint32(l.id), uint64(at)) }

func (l *eventLoop) Harmed(err *member.LoadError) { l.r.harm(err) }

func (l *eventLoop) At() (order.Cursor, []protocol.Config) { return l.r.apply.at() }

func (l *eventLoop) Install(base *protocol.Base) { l.r.apply.pushInstall(l.id, base) }

func (l *eventLoop) Commit(c intake.CommittedEntries) {
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

func (l *eventLoop) ReadPoint(g *intake.ReadGroup, index protocol.Index) {
	l.r.apply.readPoint(g, l.id, index)
}

func (l *eventLoop) FailRead(g *intake.ReadGroup, err error) { l.r.apply.failRead(g, err) }

func (l *eventLoop) WantSnapshot() { l.r.apply.push(apply.ApplyItem{Due: true}) }

func (l *eventLoop) TendState(st *protocol.Status) {
	l.r.exchange.do(func(m *snapshot.StateExchange) { m.Tend(st) })
}

func (l *eventLoop) BodiesInstalling(index protocol.Index) { l.r.bodies.installing(l.kept, index) }

func (l *eventLoop) BodiesCommitted(entries []protocol.Entry) { l.r.bodies.committed(l.kept, entries) }

func (l *eventLoop) BodiesCompacted(index protocol.Index) { l.r.bodies.compacted(l.kept, index) }

func (l *eventLoop) Want(refs []protocol.BodyRef) { l.r.bodies.want(refs) }

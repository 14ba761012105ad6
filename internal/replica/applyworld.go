package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// applyWorld gives apply.Apply what it needs of the member.
type applyWorld struct{ *applyLoop }

// Left implements apply.ApplyWorld.
func (w applyWorld) Left(payload int, applied int64) {
	w.mu.Lock()
	w.queue.Left(payload, applied)
	w.total.Store(w.queue.Total())
	w.mu.Unlock()
}

// Installed implements apply.ApplyWorld.
func (w applyWorld) Installed() {
	w.mu.Lock()
	w.queue.Installed()
	planned := w.queue.Planned()
	w.mu.Unlock()
	if planned {
		w.r.planned()
	}
}

// Again implements apply.ApplyWorld.
func (w applyWorld) Again(it apply.ApplyItem) { w.push(it) }

// Publish implements apply.ApplyWorld.
func (w applyWorld) Publish(a *apply.Applier) error {
	if w.looks.Load() { // who comes from now on makes Apply look again
		w.looks.Store(false)
	}
	w.amu.Lock()
	ready, again, told, err := w.known.Note(a)
	w.amu.Unlock()
	if err != nil {
		return err
	}
	w.answer(ready, again)
	for _, r := range told {
		r.Done(nil)
	}
	w.r.proposer.applied(a)
	return nil
}

// PublishConfigs implements apply.ApplyWorld.
func (w applyWorld) PublishConfigs(a *apply.Applier) {
	config := a.Config()
	w.r.who.descends(config.Lineage) // before members are added
	w.amu.Lock()
	w.known.NoteConfigs(a)
	w.amu.Unlock()
	at := a.Cursor()
	w.r.bodies.obey(at.Instances(), a.Configs())
	w.r.relink(w.r.now())
	w.r.changed()
}

// Repairing implements apply.ApplyWorld.
func (w applyWorld) Repairing(needs *order.Cursor) {
	w.r.exchange.do(func(m *snapshot.StateExchange) { m.Damaged(needs) })
}

// Useless implements apply.ApplyWorld.
func (w applyWorld) Useless() { w.r.exchange.do((*snapshot.StateExchange).Useless) }

// Reshaped implements apply.ApplyWorld.
func (w applyWorld) Reshaped(a *apply.Applier, installed *member.Meta) error {
	if installed != nil {
		w.mu.Lock()
		w.queue.Follow(installed)
		w.mu.Unlock()
	}
	if err := w.r.carryOut(); err != nil {
		return err
	}
	at := a.Cursor()
	w.r.bodies.Kept(func(k *body.Kept) { k.Applied(&at) })
	return nil
}

// Beginning implements apply.ApplyWorld.
func (w applyWorld) Beginning() bool {
	w.r.imu.Lock()
	defer w.r.imu.Unlock()
	return w.r.instances.Beginning()
}

// Restored implements apply.ApplyWorld.
func (w applyWorld) Restored(a *apply.Applier, instance protocol.InstanceID, index protocol.Index) error {
	if instance == 0 {
		return w.r.bodies.mended(a)
	}
	return w.r.bodies.installed(instance, index, a)
}

// Cut implements apply.ApplyWorld.
func (w applyWorld) Cut(meta *member.Meta, bytes int64) {
	for _, l := range w.r.all() {
		l.snapshotWritten(*meta, bytes)
	}
}

// Meet implements apply.ApplyWorld.
func (w applyWorld) Meet() {
	for _, l := range w.r.all() {
		l.input(protocol.Meet{}, 0)
	}
}

// Save implements apply.ApplyWorld.
func (w applyWorld) Save(meta member.Meta, state member.Snapshot, bytes int64) {
	w.r.spawn(func(ctx context.Context) {
		h, err, began := datadir.SnapshotHeader{Meta: meta, HasState: state != nil}, error(nil), w.r.now()
		if state == nil {
			err = w.r.dir.Snapshots.Write(h, nil)
		} else {
			err = errors.Join(w.r.dir.Snapshots.Write(h, writeView(ctx, state)), state.Close())
		}
		if err == nil {
			w.r.snapshots.save.observe(w.r.now() - began)
		}
		w.push(apply.ApplyItem{Wrote: &apply.Written{Meta: meta, Bytes: bytes, Err: err}})
	})
}

// Saved implements apply.ApplyWorld.
func (w applyWorld) Saved(at *member.Saved) { w.r.saved.Store(at) }

// Received implements apply.ApplyWorld.
func (w applyWorld) Received(instance protocol.InstanceID, index protocol.Index) (member.ReceivedSnapshot, error) {
	w.opened = w.r.now()
	var f *datadir.SnapshotReader
	err := w.r.withDescriptors("reading a snapshot", func() (err error) {
		f, err = w.r.dir.Snapshots.At(protocol.Base{Index: index}, instance)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Staged implements apply.ApplyWorld.
func (w applyWorld) Staged() (member.ReceivedSnapshot, error) {
	w.opened = w.r.now()
	var f *datadir.SnapshotReader
	err := w.r.withDescriptors("reading a snapshot", func() (err error) {
		f, err = w.r.dir.Snapshots.Staged()
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Merged implements apply.ApplyWorld.
func (w applyWorld) Merged(at *member.Meta, err error) {
	if err != nil {
		w.r.log.Warn("a snapshot cannot be merged into the state", "err", err)
	}
	if err := w.r.dir.Snapshots.Unstage(); err != nil {
		w.r.log.Warn("a snapshot that was merged cannot be removed", "err", err)
	}
	w.r.exchange.do(func(m *snapshot.StateExchange) { m.Merged(at, err) })
}

// Prune implements apply.ApplyWorld.
func (w applyWorld) Prune(p protocol.Position) error {
	return w.r.withDescriptors("removing old snapshots", func() error { return w.r.dir.Snapshots.Prune(p) })
}

// Tell implements apply.ApplyWorld.
func (w applyWorld) Tell(n apply.ApplyNews) {
	log := w.r.log
	switch n.What {
	case apply.SnapshotInstalled:
		log.Info("snapshot installed", "event", "snapshot-installed", "instance", n.Instance,
			"index", n.Base.Index, "term", n.Base.Term, "position", n.Position, "took", w.r.now()-w.opened)
	case apply.SnapshotWritten:
		w.r.metrics.snapshots.Add(1)
		log.Info("snapshot written", "position", n.Position)
	case apply.SnapshotFailed:
		log.Error("snapshot failed", "event", "snapshot-failed", "position", n.Position, "err", n.Err)
	case apply.SnapshotsRemain:
		log.Warn("old snapshots cannot be removed", "err", n.Err)
	case apply.StateDamaged:
		log.Error("the state is damaged, asking others for theirs", "event", "state-damaged", "err", n.Err)
	case apply.StateUseless:
		log.Warn("a snapshot cannot replace the damaged state", "err", n.Err)
	case apply.StateReplaced:
		log.Info("the damaged state was replaced", "event", "state-replaced", "position", n.Position,
			"took", w.r.now()-w.opened)
	}
}

package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// applyWorld gives member.Apply what it needs of the member.
type applyWorld struct{ *applyLoop }

// Left implements member.ApplyWorld.
func (w applyWorld) Left(payload int, applied int64) {
	w.mu.Lock()
	w.queue.Left(payload, applied)
	w.mu.Unlock()
}

// Installed implements member.ApplyWorld.
func (w applyWorld) Installed() {
	w.mu.Lock()
	w.queue.Installed()
	planned := w.queue.Planned()
	w.mu.Unlock()
	if planned {
		w.r.planned()
	}
}

// Again implements member.ApplyWorld.
func (w applyWorld) Again(it member.ApplyItem) { w.push(it) }

// Publish implements member.ApplyWorld.
func (w applyWorld) Publish(a *member.Applier) error {
	if w.looks.Load() { // who comes from now on makes Apply look again
		w.looks.Store(false)
	}
	w.amu.Lock()
	ready, void, told, err := w.known.Note(a)
	w.amu.Unlock()
	if err != nil {
		return err
	}
	w.answer(ready, void)
	for _, r := range told {
		r.Done(nil)
	}
	w.r.proposer.applied(a)
	return nil
}

// PublishConfigs implements member.ApplyWorld.
func (w applyWorld) PublishConfigs(a *member.Applier) {
	config := a.Config()
	w.r.descends(config.Lineage) // before members are added
	w.amu.Lock()
	w.known.NoteConfigs(a)
	w.amu.Unlock()
	at := a.Cursor()
	w.r.bodies.obey(at.Instances(), a.Configs())
	w.r.relink(w.r.now())
	w.r.changed()
}

// Repairing implements member.ApplyWorld.
func (w applyWorld) Repairing(needs *order.Cursor) {
	w.r.exchange.do(func(m *member.StateExchange) { m.Damaged(needs) })
}

// Useless implements member.ApplyWorld.
func (w applyWorld) Useless() { w.r.exchange.do((*member.StateExchange).Useless) }

// Reshaped implements member.ApplyWorld.
func (w applyWorld) Reshaped(a *member.Applier, installed *member.Meta) error {
	if installed != nil {
		w.mu.Lock()
		w.queue.Follow(installed)
		w.mu.Unlock()
	}
	if err := w.r.carryOut(); err != nil {
		return err
	}
	at := a.Cursor()
	w.r.bodies.Kept(func(k *member.Kept) { k.Applied(&at) })
	return nil
}

// Beginning implements member.ApplyWorld.
func (w applyWorld) Beginning() bool {
	w.r.imu.Lock()
	defer w.r.imu.Unlock()
	return w.r.instances.Beginning()
}

// Restored implements member.ApplyWorld.
func (w applyWorld) Restored(a *member.Applier, instance protocol.InstanceID, index protocol.Index) error {
	if instance == 0 {
		return w.r.bodies.mended(a)
	}
	return w.r.bodies.installed(instance, index, a)
}

// Cut implements member.ApplyWorld.
func (w applyWorld) Cut(meta *member.Meta, bytes int64) {
	for _, l := range w.r.all() {
		l.snapshotWritten(*meta, bytes)
	}
}

// Meet implements member.ApplyWorld.
func (w applyWorld) Meet() {
	for _, l := range w.r.all() {
		l.input(protocol.Meet{}, 0)
	}
}

// Save implements member.ApplyWorld.
func (w applyWorld) Save(meta member.Meta, state member.Snapshot, bytes int64) {
	w.r.spawn(func(ctx context.Context) {
		h, err := datadir.SnapshotHeader{Meta: meta, HasState: state != nil}, error(nil)
		if state == nil {
			err = w.r.dir.Snapshots.Write(h, nil)
		} else {
			err = errors.Join(w.r.dir.Snapshots.Write(h, writeView(ctx, state)), state.Close())
		}
		w.push(member.ApplyItem{Wrote: &member.Written{Meta: meta, Bytes: bytes, Err: err}})
	})
}

// Saved implements member.ApplyWorld.
func (w applyWorld) Saved(at *member.Saved) { w.r.saved.Store(at) }

// Received implements member.ApplyWorld.
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

// Staged implements member.ApplyWorld.
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

// Merged implements member.ApplyWorld.
func (w applyWorld) Merged(at *member.Meta, err error) {
	if err != nil {
		w.r.log.Warn("a snapshot cannot be merged into the state", "err", err)
	}
	if err := w.r.dir.Snapshots.Unstage(); err != nil {
		w.r.log.Warn("a snapshot that was merged cannot be removed", "err", err)
	}
	w.r.exchange.do(func(m *member.StateExchange) { m.Merged(at, err) })
}

// Prune implements member.ApplyWorld.
func (w applyWorld) Prune(p protocol.Position) error {
	return w.r.withDescriptors("removing old snapshots", func() error { return w.r.dir.Snapshots.Prune(p) })
}

// Tell implements member.ApplyWorld.
func (w applyWorld) Tell(n member.ApplyNews) {
	log := w.r.log
	switch n.What {
	case member.SnapshotInstalled:
		log.Info("snapshot installed", "instance", n.Instance, "index", n.Base.Index, "term", n.Base.Term, "position", n.Position, "took", w.r.now()-w.opened)
	case member.SnapshotWritten:
		w.r.metrics.snapshots.Add(1)
		log.Info("snapshot written", "position", n.Position)
	case member.SnapshotFailed:
		log.Error("snapshot failed", "position", n.Position, "err", n.Err)
	case member.SnapshotsRemain:
		log.Warn("old snapshots cannot be removed", "err", n.Err)
	case member.StateDamaged:
		log.Error("the state is damaged, asking others for theirs", "err", n.Err)
	case member.StateUseless:
		log.Warn("a snapshot cannot replace the damaged state", "err", n.Err)
	case member.StateReplaced:
		log.Info("the damaged state was replaced", "position", n.Position, "took", w.r.now()-w.opened)
	}
}

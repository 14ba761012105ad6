package node

import (
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// The apply loop of a member: its queue, the state machine, and the time that applying takes.

var (
	snapshotsSaved        = count.New("snapshots", "snapshots")
	SnapshotsInstalled    = count.New("snapshots_installed", "installs")
	DamagedStatesReplaced = count.New("damaged_states_replaced", "damaged states replaced", count.Bodiless)
)

// applying is the apply loop of a running member.
type applying struct {
	m        *Member
	Queue    apply.ApplyQueue
	Progress *apply.Applied
	Work     *apply.Apply
	// inHand are the items that were taken out of the queue. each is the time for one of them.
	inHand []apply.ApplyItem
	each   time.Duration
	// toApply signals that the queue is not empty. toLoops carries news to the instances.
	toApply, toLoops line
	// toPlans signals that there are plans to execute, and carries their results.
	toPlans line

	Exchange *snapshot.StateExchange
	offers   []func()     // snapshots that wait until another one is received
	saves    member.Saved // the snapshots that Apply knows of

	profile uint64 // the version of the last profile that was applied

	base   order.Cursor // of the snapshot that the state came from
	opened order.Cursor // of the snapshot that was opened last
}

// beginApplying creates the apply loop, as replica.assemble does.
func beginApplying(m *Member, meta member.Meta, skip protocol.Position) {
	m.Applier = apply.NewApplier(m.Machines.All, meta, m.session, skip, lifecycle.LoadFrom(m.Log))
	m.Applier.Within = m.Running.dir.Within
	judgeProfile(m, &meta.Config)
	m.Env.Violate(m.ID, m.Applier.Derive(m.Env.Set.derive(), &meta)) // the sections of the opened snapshot are known
	m.Applier.Break(m.Own.MutantName())
	m.Applier.Passed = m.passed
	m.Applier.Again = func(b *intake.Batch) { m.again([]*intake.Batch{b}) }
	m.Applier.Given = m.Body.kept.Given
	a := &m.Running.applying
	a.m, a.base, a.saves = m, meta.Cursor, member.Saved{Newest: meta.Cursor}
	a.toApply, a.toLoops, a.toPlans = line{m: m}, line{m: m}, line{m: m}
	a.Queue.Limit = m.Own.ApplyBytes
	if a.Queue.Plans = apply.NewPlanner(&meta); a.Queue.Plans != nil {
		a.Queue.Plans.Break(m.Own.MutantName())
	}
	a.Progress = apply.NewApplied(m.Applier)
	a.Progress.Break(m.Own.MutantName())
	a.Exchange = snapshot.NewStateExchange(exchangeHost{m}, m.Env.Set.Election, m.Own.MutantName())
	a.Exchange.Derive = m.Env.Set.derive()
	a.Work = apply.NewApply(m.Applier, meta.Cursor, int64(m.Own.SnapshotBytes), applyWorld{m})
}

// Push queues an item for the apply loop.
func (a *applying) Push(it apply.ApplyItem) {
	a.Queue.Push(it)
	a.toApply.post(a.apply)
	a.m.planned()
}

// pushInstall queues a snapshot that an instance has accepted.
func (a *applying) pushInstall(instance protocol.InstanceID, base *protocol.Base) {
	dropped := a.Queue.PushInstall(instance, base)
	for i := range dropped {
		dropped[i].Drop(member.ErrResultUnknown)
	}
	a.toApply.post(a.apply)
}

// apply empties the queue and applies the items at once, or one after the other if the seed makes applying slow.
func (a *applying) apply() {
	if len(a.inHand) > 0 || a.Queue.Empty() {
		return
	}
	a.inHand = a.Queue.Take(nil)
	a.each = a.applyTime() / time.Duration(len(a.inHand))
	a.applyNext()
}

func (a *applying) applyNext() {
	for a.m.Up && len(a.inHand) > 0 {
		if a.each > 0 {
			a.m.Later(a.each, func() { a.applyOne(); a.applyNext() })
			return
		}
		a.applyOne()
	}
	if a.m.Up {
		a.apply()
	}
}

// applyOne applies the next item in hand, and checks the result.
func (a *applying) applyOne() {
	it := a.inHand[0]
	a.inHand = a.inHand[1:]
	err := a.Work.Do(&it)
	switch {
	case !a.m.Up:
	case err == nil:
		a.m.Env.Violate(a.m.ID, a.m.Applier.Check())
		a.m.Env.Violate(a.m.ID, a.m.Proposals.Check())
		a.m.Env.Violate(a.m.ID, a.Progress.Check())
		a.m.Env.Violate(a.m.ID, a.Queue.Check(a.m.waiting()))
		if at := a.m.Applier.Cursor(); a.Queue.Plans != nil {
			a.m.Env.Violate(a.m.ID, a.Queue.Plans.Check(&at))
		}
	case a.Queue.Overtaken(err):
		a.m.Env.Tracef("%s   is overtaken by a snapshot: %v", a.m.ID, err)
	default:
		a.m.fail(err)
	}
}

// waiting returns the payload bytes that wait behind the queue.
func (r *Running) waiting() int {
	bytes := r.Applier.Resident()
	for _, it := range r.inHand {
		for i := range it.Commit.Entries {
			bytes += len(it.Commit.Entries[i].Payload)
		}
	}
	return bytes
}

// applyWorld is the member as the apply loop needs it.
type applyWorld struct{ m *Member }

// Left implements apply.ApplyWorld.
func (w applyWorld) Left(payload int, applied int64) { w.m.Queue.Left(payload, applied) }

// Installed implements apply.ApplyWorld.
func (w applyWorld) Installed() {
	w.m.Queue.Installed()
	w.m.planned()
}

// Again implements apply.ApplyWorld.
func (w applyWorld) Again(it apply.ApplyItem) { w.m.Push(it) }

// Publish implements apply.ApplyWorld.
func (w applyWorld) Publish(a *apply.Applier) error {
	m := w.m
	if !m.Up {
		return nil
	}
	at := a.Cursor()
	m.Env.Violate(m.ID, m.Env.Court.Place(m.ID, &at, &m.base, a.Added))
	judgeSections(m)
	ready, again, told, err := m.Progress.Note(a)
	if err != nil {
		return err
	}
	for _, g := range ready {
		g.Done(nil)
	}
	m.Env.Events.Add(readsAskedAgain, len(again))
	m.askAgain(again)
	for _, r := range told {
		r.Done(nil)
	}
	if m.Proposals.Awaits() && m.Proposals.Applied(m.Clock(), a.Token) {
		m.WakeTakers()
	}
	return nil
}

// PublishConfigs implements apply.ApplyWorld.
func (w applyWorld) PublishConfigs(a *apply.Applier) {
	m := w.m
	config := a.Config()
	judgeProfile(m, &config)
	m.Handshakes.Descends(config.Lineage)
	compareEarly(m)
	m.Progress.NoteConfigs(a)
	linked := m.linked()
	m.Links.Follow(m.Clock(), &linked)
	m.Env.Violate(m.ID, m.Links.Check())
	at := a.Cursor()
	m.Body.kept.Obey(at.Instances(), a.Configs())
}

// Repairing implements apply.ApplyWorld.
func (w applyWorld) Repairing(needs *order.Cursor) {
	w.m.Exchange.Damaged(needs)
}

// Useless implements apply.ApplyWorld.
func (w applyWorld) Useless() { w.m.Exchange.Useless() }

// Reshaped implements apply.ApplyWorld.
func (w applyWorld) Reshaped(a *apply.Applier, installed *member.Meta) error {
	m := w.m
	if installed != nil {
		m.Queue.Follow(installed)
	}
	if err := m.carryOut(); err != nil {
		return err
	}
	at := a.Cursor()
	m.Body.kept.Applied(&at)
	m.Env.Court.Reached(&at)
	return nil
}

// Beginning implements apply.ApplyWorld.
func (w applyWorld) Beginning() bool { return w.m.instances.Beginning() }

// Restored implements apply.ApplyWorld.
func (w applyWorld) Restored(a *apply.Applier, instance protocol.InstanceID, index protocol.Index) error {
	m := w.m
	refs, _, err := body.LiveBodies(a.Machine())
	if err != nil {
		return err
	}
	for _, ref := range refs {
		m.Env.Court.Of(ref.Instance).Bodies.Refer(m.Judged(), uint64(ref.Index), uint64(ref.Term))
	}
	cursor := a.Cursor()
	if instance == 0 {
		m.Body.kept.Mended(&cursor, refs)
	} else {
		m.Body.kept.Installed(instance, index, &cursor, refs)
	}
	m.Body.kept.Sweep()
	return nil
}

// Cut implements apply.ApplyWorld.
func (w applyWorld) Cut(meta *member.Meta, bytes int64) {
	w.m.Body.releaseUpTo(meta.Command)
	w.m.between, w.m.cutAt = max(w.m.between, bytes-w.m.cutAt), bytes
	for _, s := range w.m.InForce {
		s.snapshotWritten(meta, bytes)
	}
}

// Meet implements apply.ApplyWorld.
func (w applyWorld) Meet() {
	for _, s := range w.m.InForce {
		s.Step(protocol.Meet{})
	}
}

// Save implements apply.ApplyWorld.
func (w applyWorld) Save(meta member.Meta, state member.Snapshot, bytes int64) {
	m := w.m
	b, err := bytesOf(state)
	if err != nil {
		m.fail(err)
		return
	}
	m.Env.Violate(m.ID, m.Env.Court.Snapshot(m.ID, meta, b))
	judgeProfile(m, &meta.Config)
	m.store(datadir.SnapshotHeader{Meta: meta, HasState: state != nil}, b, m.Snaps.Write, false, func(err error) {
		m.Push(apply.ApplyItem{Wrote: &apply.Written{Meta: meta, Bytes: bytes, Err: err}})
	})
}

// Saved implements apply.ApplyWorld.
func (w applyWorld) Saved(at *member.Saved) { w.m.saves = *at }

// Received implements apply.ApplyWorld.
func (w applyWorld) Received(instance protocol.InstanceID, index protocol.Index) (member.ReceivedSnapshot, error) {
	f, err := w.m.Snaps.At(protocol.Base{Index: index}, instance)
	if err != nil {
		return nil, err
	}
	w.m.opened = f.Header.Cursor
	return f, nil
}

// Staged implements apply.ApplyWorld.
func (w applyWorld) Staged() (member.ReceivedSnapshot, error) {
	f, err := w.m.Snaps.Staged()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Merged implements apply.ApplyWorld.
func (w applyWorld) Merged(at *member.Meta, err error) {
	m := w.m
	if err := m.Snaps.Unstage(); err != nil {
		m.Env.Tracef("%s   cannot remove a snapshot: %v", m.ID, err)
	}
	m.Env.Tracef("%s   has what it merged on its disk: %v", m.ID, err)
	m.Exchange.Merged(at, err)
}

// Prune implements apply.ApplyWorld.
func (w applyWorld) Prune(p protocol.Position) error { return w.m.Snaps.Prune(p) }

// Tell implements apply.ApplyWorld.
func (w applyWorld) Tell(n apply.ApplyNews) {
	m := w.m
	switch n.What {
	case apply.SnapshotInstalled, apply.StateReplaced:
		m.Env.Count(SnapshotsInstalled)
		if n.What == apply.StateReplaced {
			m.Env.Count(DamagedStatesReplaced)
		}
		m.drops = nil
		m.base = m.opened
		m.Env.Tracef("%s   installed the snapshot at %d%s, position %d", m.ID, n.Base.Index, m.Env.Named(n.Instance), n.Position)
	case apply.SnapshotWritten:
		m.Env.Count(snapshotsSaved)
		m.Env.Tracef("%s   has a snapshot at position %d", m.ID, n.Position)
	case apply.SnapshotFailed, apply.SnapshotsRemain, apply.StateDamaged, apply.StateUseless:
		m.Env.Tracef("%s   at position %d: %v", m.ID, n.Position, n.Err)
	}
}

// snapshotWritten lets the instance cut its log up to the first entry that is still needed.
func (s *MemberInstance) snapshotWritten(meta *member.Meta, bytes int64) {
	m, newest, upTo := s.Member, meta.Cursor.Point(s.Instance).Index, protocol.Index(0)
	s.Witness.waste.snapshot(newest)
	if m.Env.Chance(0.5) {
		upTo, s.Asked = newest, max(s.Asked, newest)
	}
	s.Do(func() {
		streaming := func(to protocol.MemberID) protocol.Index { return m.Exchange.Streaming(to, s.Instance) }
		s.CutLog(s.Hosted.SnapshotWritten(newest, upTo, bytes, m.health.Harmed(s.Instance), streaming))
	})
}

// applyTime returns the time to apply the items that leave the queue now.
func (a *applying) applyTime() time.Duration {
	return max(a.m.Env.Between(0, a.m.Own.ApplyMax), a.m.Lagging-a.m.Env.Now())
}

package sim

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

// What a member applies: the queue, the state machine, and the time that it takes.

var (
	snapshotsSaved        = count.New("snapshots", "snapshots")
	snapshotsInstalled    = count.New("snapshots_installed", "installs")
	damagedStatesReplaced = count.New("damaged_states_replaced", "damaged states replaced", count.Bodiless)
)

// applying is the part of a running member that applies.
type applying struct {
	queue    apply.ApplyQueue
	progress *apply.Applied
	work     *apply.Apply
	// inHand is what was taken out of the queue. each is how long one item of it takes.
	inHand []apply.ApplyItem
	each   time.Duration
	// toApply tells that the queue is not empty. toLoops tells what the instances should look at.
	toApply, toLoops line
	// toPlans tells that there are plans to be carried out, and what follows from them.
	toPlans line

	exchange *snapshot.StateExchange
	offers   []func()     // snapshots that wait until another one was received
	saves    member.Saved // the snapshots that Apply knows of

	base   order.Cursor // of the snapshot that the state came from
	opened order.Cursor // of the snapshot that was opened last
}

// beginApplying makes the part that applies, as replica.assemble does.
func (m *Member) beginApplying(meta member.Meta, skip protocol.Position) {
	m.applier = apply.NewApplier(m.machines.All, meta, m.session, skip, lifecycle.LoadFrom(m.log))
	m.applier.Within = m.running.dir.Within
	m.w.Violate(m.id, m.applier.Derive(m.w.set.derive(), &meta)) // what was opened has sections that are known
	m.applier.Break(m.own.mutant())
	m.applier.Passed = m.passed
	m.applier.Again = func(b *intake.Batch) { m.again([]*intake.Batch{b}) }
	m.applier.Given = m.body.kept.Given
	a := &m.running.applying
	a.base, a.saves = meta.Cursor, member.Saved{Newest: meta.Cursor}
	a.toApply, a.toLoops, a.toPlans = line{m: m}, line{m: m}, line{m: m}
	a.queue.Limit = m.own.ApplyBytes
	if a.queue.Plans = apply.NewPlanner(&meta); a.queue.Plans != nil {
		a.queue.Plans.Mutant = m.own.mutant()
	}
	a.progress = apply.NewApplied(m.applier)
	a.progress.Break(m.own.mutant())
	a.exchange = snapshot.NewStateExchange(exchangeHost{m}, m.w.set.Election, m.own.mutant())
	a.exchange.Derive = m.w.set.derive()
	a.work = apply.NewApply(m.applier, meta.Cursor, int64(m.own.SnapshotBytes), applyWorld{m})
}

// push queues something for the part of the member that applies.
func (m *Member) push(it apply.ApplyItem) {
	m.queue.Push(it)
	m.toApply.post(m.apply)
	m.planned()
}

// pushInstall queues a snapshot that an instance has accepted.
func (m *Member) pushInstall(instance protocol.InstanceID, base *protocol.Base) {
	dropped := m.queue.PushInstall(instance, base)
	for i := range dropped {
		dropped[i].Drop(member.ErrResultUnknown)
	}
	m.toApply.post(m.apply)
}

// apply takes out what waits. It applies that at once. Where the seed says that applying is slow,
// it applies one item after the other.
func (m *Member) apply() {
	if len(m.inHand) > 0 || m.queue.Empty() {
		return
	}
	m.inHand = m.queue.Take(nil)
	m.each = m.applyTime() / time.Duration(len(m.inHand))
	m.applyNext()
}

func (m *Member) applyNext() {
	for m.up && len(m.inHand) > 0 {
		if m.each > 0 {
			m.later(m.each, func() { m.applyOne(); m.applyNext() })
			return
		}
		m.applyOne()
	}
	if m.up {
		m.apply()
	}
}

// applyOne carries out the next item in hand, and checks how that ended.
func (m *Member) applyOne() {
	it := m.inHand[0]
	m.inHand = m.inHand[1:]
	err := m.work.Do(&it)
	switch {
	case !m.up:
	case err == nil:
		m.w.Violate(m.id, m.applier.Check())
		m.w.Violate(m.id, m.proposals.Check())
		m.w.Violate(m.id, m.progress.Check())
		m.w.Violate(m.id, m.queue.Check(m.waiting()))
		if at := m.applier.Cursor(); m.queue.Plans != nil {
			m.w.Violate(m.id, m.queue.Plans.Check(&at))
		}
	case m.queue.Overtaken(err):
		m.w.Tracef("%s   is overtaken by a snapshot: %v", m.id, err)
	default:
		m.fail(err)
	}
}

// waiting is how many payload bytes wait behind the queue.
func (m *Member) waiting() int {
	bytes := m.applier.Resident()
	for _, it := range m.inHand {
		for i := range it.Commit.Entries {
			bytes += len(it.Commit.Entries[i].Payload)
		}
	}
	return bytes
}

// applyWorld is what the part that applies asks of the member around it.
type applyWorld struct{ m *Member }

// Left implements apply.ApplyWorld.
func (w applyWorld) Left(payload int, applied int64) { w.m.queue.Left(payload, applied) }

// Installed implements apply.ApplyWorld.
func (w applyWorld) Installed() {
	w.m.queue.Installed()
	w.m.planned()
}

// Again implements apply.ApplyWorld.
func (w applyWorld) Again(it apply.ApplyItem) { w.m.push(it) }

// Publish implements apply.ApplyWorld.
func (w applyWorld) Publish(a *apply.Applier) error {
	m := w.m
	if !m.up {
		return nil
	}
	at := a.Cursor()
	m.w.Violate(m.id, m.w.court.Place(m.id, &at, &m.base, a.Added))
	m.judgeSections()
	ready, void, told, err := m.progress.Note(a)
	if err != nil {
		return err
	}
	for _, g := range ready {
		g.Done(nil)
	}
	m.askAgain(void)
	for _, r := range told {
		r.Done(nil)
	}
	if m.proposals.Awaits() && m.proposals.Applied(m.clock(), a.Token) {
		m.wakeTakers()
	}
	return nil
}

// PublishConfigs implements apply.ApplyWorld.
func (w applyWorld) PublishConfigs(a *apply.Applier) {
	m := w.m
	config := a.Config()
	m.handshakes.Descends(config.Lineage)
	m.checkEarly()
	m.progress.NoteConfigs(a)
	linked := m.linked()
	m.links.Follow(m.clock(), &linked)
	m.w.Violate(m.id, m.links.Check())
	at := a.Cursor()
	m.body.kept.Obey(at.Instances(), a.Configs())
}

// Repairing implements apply.ApplyWorld.
func (w applyWorld) Repairing(needs *order.Cursor) {
	w.m.exchange.Damaged(needs)
}

// Useless implements apply.ApplyWorld.
func (w applyWorld) Useless() { w.m.exchange.Useless() }

// Reshaped implements apply.ApplyWorld.
func (w applyWorld) Reshaped(a *apply.Applier, installed *member.Meta) error {
	m := w.m
	if installed != nil {
		m.queue.Follow(installed)
	}
	if err := m.carryOut(); err != nil {
		return err
	}
	at := a.Cursor()
	m.body.kept.Applied(&at)
	m.w.court.Reached(at.Next.Round)
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
		m.w.court.Of(ref.Instance).Bodies.Refer(m.judged(), uint64(ref.Index), uint64(ref.Term))
	}
	cursor := a.Cursor()
	if instance == 0 {
		m.body.kept.Mended(&cursor, refs)
	} else {
		m.body.kept.Installed(instance, index, &cursor, refs)
	}
	m.body.kept.Sweep()
	return nil
}

// Cut implements apply.ApplyWorld.
func (w applyWorld) Cut(meta *member.Meta, bytes int64) {
	w.m.releaseUpTo(meta.Command)
	w.m.between, w.m.cutAt = max(w.m.between, bytes-w.m.cutAt), bytes
	for _, s := range w.m.inForce {
		s.snapshotWritten(meta, bytes)
	}
}

// Meet implements apply.ApplyWorld.
func (w applyWorld) Meet() {
	for _, s := range w.m.inForce {
		s.step(protocol.Meet{})
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
	m.w.Violate(m.id, m.w.court.Snapshot(m.id, meta, b))
	m.store(datadir.SnapshotHeader{Meta: meta, HasState: state != nil}, b, m.snaps.Write, false, func(err error) {
		m.push(apply.ApplyItem{Wrote: &apply.Written{Meta: meta, Bytes: bytes, Err: err}})
	})
}

// Saved implements apply.ApplyWorld.
func (w applyWorld) Saved(at *member.Saved) { w.m.saves = *at }

// Received implements apply.ApplyWorld.
func (w applyWorld) Received(instance protocol.InstanceID, index protocol.Index) (member.ReceivedSnapshot, error) {
	f, err := w.m.snaps.At(protocol.Base{Index: index}, instance)
	if err != nil {
		return nil, err
	}
	w.m.opened = f.Header.Cursor
	return f, nil
}

// Staged implements apply.ApplyWorld.
func (w applyWorld) Staged() (member.ReceivedSnapshot, error) {
	f, err := w.m.snaps.Staged()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Merged implements apply.ApplyWorld.
func (w applyWorld) Merged(at *member.Meta, err error) {
	m := w.m
	if err := m.snaps.Unstage(); err != nil {
		m.w.Tracef("%s   cannot remove a snapshot: %v", m.id, err)
	}
	m.w.Tracef("%s   has what it merged on its disk: %v", m.id, err)
	m.exchange.Merged(at, err)
}

// Prune implements apply.ApplyWorld.
func (w applyWorld) Prune(p protocol.Position) error { return w.m.snaps.Prune(p) }

// Tell implements apply.ApplyWorld.
func (w applyWorld) Tell(n apply.ApplyNews) {
	m := w.m
	switch n.What {
	case apply.SnapshotInstalled, apply.StateReplaced:
		m.w.Count(snapshotsInstalled)
		if n.What == apply.StateReplaced {
			m.w.Count(damagedStatesReplaced)
		}
		m.drops = nil
		m.base = m.opened
		m.w.Tracef("%s   installed the snapshot at %d%s, position %d", m.id, n.Base.Index, m.w.named(n.Instance), n.Position)
	case apply.SnapshotWritten:
		m.w.Count(snapshotsSaved)
		m.w.Tracef("%s   has a snapshot at position %d", m.id, n.Position)
	case apply.SnapshotFailed, apply.SnapshotsRemain, apply.StateDamaged, apply.StateUseless:
		m.w.Tracef("%s   at position %d: %v", m.id, n.Position, n.Err)
	}
}

// snapshotWritten lets the instance cut its log, as far as nobody needs the entries any more.
func (s *memberInstance) snapshotWritten(meta *member.Meta, bytes int64) {
	m, newest, upTo := s.m, meta.Cursor.Point(s.instance).Index, protocol.Index(0)
	s.witness.waste.snapshot(newest)
	if m.w.Chance(0.5) {
		upTo, s.asked = newest, max(s.asked, newest)
	}
	s.do(func() {
		streaming := func(to protocol.MemberID) protocol.Index { return m.exchange.Streaming(to, s.instance) }
		s.cutLog(s.hosted.SnapshotWritten(newest, upTo, bytes, m.health.Harmed(s.instance), streaming))
	})
}

// applyTime is how long the member takes to apply what it takes out of its queue now.
func (m *Member) applyTime() time.Duration {
	return max(m.w.Between(0, m.own.ApplyMax), m.lagging-m.w.Now())
}

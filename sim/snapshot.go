package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/replica"
)

const (
	dataDir = "/data"
	snapDir = "/data/snapshots"
	logDir  = "/data/log"
)

// snapshot is a snapshot on its way: into a file or to another member.
type snapshot struct {
	replica.SnapshotHeader
	state []byte // nil for a checkpoint of a state machine that keeps its own state
}

func (s *snapshot) index(instance protocol.InstanceID) protocol.Index {
	return s.Cursor.Point(instance).Index
}

// place is where the snapshot stands, for the trace.
func (s *snapshot) place() string {
	if !s.Cursor.Woven() {
		return fmt.Sprint(s.index(firstInstance))
	}
	return fmt.Sprintf("%d.%d (position %d)", s.Cursor.Next.Round, s.Cursor.Next.Instance, s.Cursor.Position)
}

// view is a snapshot of the state as it is now.
func (m *Member) view() (*snapshot, error) {
	v, err := m.machine.Snapshot()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := v.WriteTo(context.Background(), &b); err != nil {
		return nil, err
	}
	return &snapshot{replica.SnapshotHeader{Meta: m.applier.Meta(), HasState: true}, b.Bytes()}, nil
}

// checkpoint is what stands for the state of a machine on disk, after making it durable.
func (m *Member) checkpoint(d member.DurableStateMachine) (*snapshot, error) {
	if err := d.Sync(); err != nil {
		return nil, err
	}
	return &snapshot{SnapshotHeader: replica.SnapshotHeader{Meta: m.applier.Meta()}}, nil
}

// store makes a snapshot durable; then, if the process still runs, it calls done. Where
// it stops in between, the file may be there or not.
func (m *Member) store(s *snapshot, write func(replica.SnapshotHeader, func(io.Writer) error) error, done func()) {
	var state func(io.Writer) error
	if s.state != nil {
		state = func(w io.Writer) error { _, err := w.Write(s.state); return err }
	}
	m.later(m.syncTime(), func() {
		if err := write(s.SnapshotHeader, state); err != nil {
			m.fail(err)
			return
		}
		if m.snapped.Before(&s.Cursor) {
			m.snapped = s.Cursor
		}
		// The process goes on a little later: it may stop right here.
		m.later(m.w.between(0, m.w.set.Heartbeat), done)
	})
}

// restore opens the snapshots and brings the state machine to the newest. A new member
// first writes one of nothing, with those whom it takes for the members.
func (m *Member) restore(r *running) (meta member.Meta, skip protocol.Position, err error) {
	if r.snaps, err = replica.OpenSnapshots(m.disk, snapDir); err != nil {
		return meta, 0, err
	}
	if ok, err := r.snaps.Any(); err != nil {
		return meta, 0, err
	} else if !ok {
		first := m.w.set.firstConfig()
		if m.join {
			first.Members = nil
		}
		if err := r.snaps.Write(replica.SnapshotHeader{Meta: member.Bootstrap(m.w.set.begin(), first.Members)}, nil); err != nil {
			return meta, 0, err
		}
	}
	return replica.Restore(r.snaps, r.machine.asStateMachine())
}

// install replaces the state by the received snapshot with this base of the instance whose
// core takes it. It stands for all instances: cores that take it later find it done.
func (m *Member) install(base protocol.Base, by *strand) error {
	if !slices.Contains(m.shape(), by.instance) {
		return nil // it is retired by now
	}
	ahead := base.Index == 0 || m.applier.Stuck() || m.applier.Added(by.instance) < base.Index
	m.w.tracef("%s   installs the snapshot at %d%s, ahead: %t", m.id, base.Index, m.w.named(by.instance), ahead)
	if ahead {
		if err := m.replace(base, by); err != nil {
			return err
		}
	}
	refs, _, err := member.LiveBodies(m.machine.asStateMachine())
	if err != nil {
		return err
	}
	by.body.retention.Restart(base.Index, refs)
	by.sweep()
	return nil
}

// replace puts the newest snapshot, which has this base or is further, in the place of the
// state.
func (m *Member) replace(base protocol.Base, by *strand) error {
	m.w.events.Installs++
	f, err := m.snaps.At(base, by.instance)
	if err != nil {
		return err
	}
	meta := f.Header.Meta
	if err := m.applier.Install(meta, f); err != nil {
		return err
	}
	m.logged = 0
	m.drops = nil
	m.base = meta.Cursor
	refs, _, err := member.LiveBodies(m.machine.asStateMachine())
	if err := m.reshaped(); err != nil {
		return err
	}
	if err := m.openRetired(m.running, &meta, m.body.store); err != nil {
		return err
	}
	for _, s := range m.kept() {
		s.body.retention.Renew(0, meta.Base(s.instance).Index, refs)
	}
	m.judgeWeave()
	return errors.Join(err, f.Verify(), m.snaps.Prune(meta.Cursor.Position))
}

// maybeSnapshot begins a snapshot when enough was applied since the last one.
func (m *Member) maybeSnapshot() {
	if m.saving || !m.due && m.logged < m.own.SnapshotBytes || m.applier.Stuck() {
		return
	}
	m.saving, m.due = true, false
	m.logged = 0
	var s *snapshot
	var err error
	if d, ok := m.machine.asStateMachine().(member.DurableStateMachine); ok {
		s, err = m.checkpoint(d)
	} else {
		s, err = m.view()
	}
	if err != nil {
		m.fail(err)
		return
	}
	total := m.total
	m.store(s, m.snaps.Write, func() { m.stored(s, total) })
}

// cuts is up to where the logs may be cut under a durable snapshot: where the one before it
// was, or right there, unless somebody needs more.
func (m *Member) cuts(s *snapshot, total int64) order.Cursor {
	at, there := s.Cursor.Clone(), m.w.chance(0.5)
	for i := range at.Points {
		k := m.of(at.Points[i].Instance)
		if k == nil {
			continue
		}
		st, upTo := k.inst.Core().Status(), protocol.Index(0)
		if there {
			upTo = at.Points[i].Index
		}
		cut := k.keep.Snapshot(at.Points[i].Index, upTo, total, &st, func(to protocol.MemberID) protocol.Index {
			cursor := m.streams[to]
			return cursor.Point(k.instance).Index
		})
		at.Points[i].Index = member.CutAt(cut, at.Points[i].Index, k.harmed)
	}
	return at
}

// stored cuts the logs under a durable snapshot.
func (m *Member) stored(s *snapshot, total int64) {
	m.saving = false
	m.w.events.Snapshots++
	at := m.cuts(s, total)
	spare := min(m.spare, s.Cursor.Position)
	m.spare = s.Cursor.Position
	m.w.tracef("%s   has a snapshot at %s, cuts the log at %d", m.id, s.place(), at.Points)
	if err := m.snaps.Prune(spare); err != nil {
		m.fail(err)
		return
	}
	for _, k := range m.strands {
		k.step(protocol.Compact{Index: at.Point(k.instance).Index})
	}
	m.releaseUpTo(s.Command)
	for _, k := range m.strands {
		if cut := at.Point(k.instance).Index; m.up && cut > 0 {
			k.body.retention.Compact(cut)
			k.sweep()
			k.cut(cut)
		}
	}
}

// sendSnapshot streams the state as it is now to a member that is behind the log.
func (k *strand) sendSnapshot(to protocol.MemberID) { k.stream(to, k.instance) }

// stream sends a snapshot because an instance asked for it; 0: none did.
func (k *strand) stream(to protocol.MemberID, asking protocol.InstanceID) {
	m := k.m
	s, err := m.view()
	if err != nil {
		m.fail(err)
		return
	}
	w, life, term := m.w, m.life, k.witness.status.Term
	w.events.Streams++
	m.streams[to] = s.Cursor
	w.tracef("%s   streams a snapshot at %s to %s%s", m.id, s.place(), to, w.named(k.instance))
	ended := false
	report := func(index protocol.Index) {
		if ended {
			return
		}
		ended = true
		w.after(w.between(w.set.DelayMin, w.set.DelayMax), func() {
			if m.up && m.life == life {
				delete(m.streams, to)
			}
			if m.up && m.life == life && asking != 0 {
				k.step(protocol.SnapshotSent{To: to, Index: index})
			}
		})
	}
	broken := w.chance(w.set.StreamBreaks)
	offered := member.Offered{Cursor: s.Cursor, Instance: asking}
	if asking != 0 {
		offered.Base = k.inst.Core().Status().First - 1
	}
	w.offer(m, to, &offered, func(verdict member.Verdict) {
		r := w.member(to)
		if verdict == member.IntakeLog {
			report(s.index(k.instance))
			return
		}
		running, up := r.running, r.up
		w.after(w.streamTime(len(s.state)), func() {
			if broken && !w.calm || w.link(m.id, to).cut || !r.up || !up || r.running != running || !w.linked(m, life, r) || !r.up {
				w.events.BrokenStream++
				w.tracef("%s   stream of the snapshot at %s breaks", to, s.place())
				if verdict == member.IntakeTake {
					running.intake.Done(nil)
				}
				report(0)
				return
			}
			r.received(k, asking, term, s, verdict, func() { report(s.index(k.instance)) })
			w.watchStream(r, &ended, report)
		})
	})
}

// offer asks a member what becomes of a snapshot, again while it receives another one. A
// member that is down is sent it, and nobody is there.
func (w *World) offer(from *Member, to protocol.MemberID, o *member.Offered, then func(member.Verdict)) {
	r, life := w.member(to), from.life
	if !r.up {
		then(member.IntakeKnown)
		return
	}
	have := r.applier.Cursor()
	verdict := r.intake.Offer(&have, false, o)
	if verdict != member.IntakeWait {
		then(verdict)
		return
	}
	w.after(w.set.Heartbeat, func() {
		if from.up && from.life == life {
			w.offer(from, to, o, then)
		}
	})
}

// streamTime is how long a snapshot stream takes.
func (w *World) streamTime(bytes int) time.Duration {
	each := time.Second / time.Duration(cmp.Or(w.set.StreamRate, 1_000_000))
	return w.between(w.set.DelayMin, 5*w.set.DelayMax+w.set.Heartbeat) + time.Duration(bytes)*each
}

// watchStream reports a failure when the receiver stops before it has answered.
func (w *World) watchStream(r *Member, ended *bool, report func(protocol.Index)) {
	life := r.life
	w.after(w.set.Election, func() {
		switch {
		case *ended:
		case r.up && r.life == life:
			w.watchStream(r, ended, report)
		default:
			report(0)
		}
	})
}

// received makes a snapshot durable and offers it to all cores, not only to that of the
// instance whose leader sent it. The sender learns of the end of it only from an answer.
func (m *Member) received(by *strand, asking protocol.InstanceID, term protocol.Term, s *snapshot, verdict member.Verdict, answer func()) {
	offer := func() {
		for _, k := range m.strands {
			in := protocol.SnapshotReceived{From: by.m.id, Base: s.Base(k.instance)}
			if k.instance == asking {
				in.Term = term
			}
			k.step(in)
		}
		if m.up {
			m.overRetired(&s.Meta)
		}
		answer()
	}
	if verdict != member.IntakeTake {
		offer()
		return
	}
	if !m.applier.Ahead(&s.Meta) {
		m.intake.Done(nil)
		offer()
		return
	}
	m.store(s, m.snaps.Receive, func() {
		m.intake.Done(&s.Cursor)
		offer()
	})
}

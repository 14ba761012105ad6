package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/braidlog/braid/datadir"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

const (
	dataDir = "/data"
	snapDir = "/data/snapshots"
	logDir  = "/data/log"
)

// snapshot is a snapshot on its way into a file or to another member.
type snapshot struct {
	datadir.SnapshotHeader
	state []byte // nil for a checkpoint of a state machine that keeps its own state
}

func (s *snapshot) index(instance protocol.InstanceID) protocol.Index {
	return s.Cursor.Point(instance).Index
}

// place is the snapshot's place in the log, for the trace.
func (s *snapshot) place() string {
	if !s.Cursor.Woven() {
		return fmt.Sprint(s.index(firstInstance))
	}
	return fmt.Sprintf("%d.%d (position %d)", s.Cursor.Next.Round, s.Cursor.Next.Instance, s.Cursor.Position)
}

// taken is a snapshot with the bytes of its state. Without a state it is a checkpoint.
func taken(meta member.Meta, state member.Snapshot) (*snapshot, error) {
	s := &snapshot{SnapshotHeader: datadir.SnapshotHeader{Meta: meta, HasState: state != nil}}
	if state == nil {
		return s, nil
	}
	var b bytes.Buffer
	err := errors.Join(state.WriteTo(context.Background(), &b), state.Close())
	s.state = b.Bytes()
	return s, err
}

// store writes a snapshot to a file. Then it calls done if the process still runs. If the process
// stops in between, the file may exist or not.
func (m *Member) store(s *snapshot, write func(datadir.SnapshotHeader, func(io.Writer) error) error, done func(error)) {
	var state func(io.Writer) error
	if s.state != nil {
		state = func(w io.Writer) error { _, err := w.Write(s.state); return err }
	}
	m.later(m.syncTime(), func() {
		err := write(s.SnapshotHeader, state)
		switch {
		case errors.Is(err, errPower):
			m.fail(err)
			return
		case err == nil && m.snapped.Before(&s.Cursor):
			m.snapped = s.Cursor
		}
		// The process goes on a little later, because it may stop at this point.
		m.later(m.w.between(0, m.w.set.Heartbeat), func() { done(err) })
	})
}

// restore opens the snapshots and brings the state machine to the newest one. A new member first
// writes a snapshot of an empty state, with the members that it knows of.
func (m *Member) restore(r *running) (meta member.Meta, skip protocol.Position, err error) {
	if r.snaps, err = datadir.OpenSnapshots(m.disk, snapDir); err != nil {
		return meta, 0, err
	}
	if ok, err := r.snaps.Any(); err != nil {
		return meta, 0, err
	} else if !ok {
		first := m.w.set.firstConfig()
		if m.join {
			first.Members = nil
		}
		if err := r.snaps.Write(datadir.SnapshotHeader{Meta: member.Bootstrap(m.w.set.begin(), first.Members)}, nil); err != nil {
			return meta, 0, err
		}
	}
	return datadir.Restore(r.snaps, r.machine.asStateMachine())
}

// sendSnapshot streams the present state to a member that is behind the log.
func (k *memberInstance) sendSnapshot(to protocol.MemberID) {
	k.m.stream(to, k, protocol.Term(k.witness.status.Term))
}

// stream sends a snapshot because an instance asked for it. Without an instance, the other member
// asked: it misses the end of a retired instance, or needs a state. One stream serves all instances
// that ask while it runs.
func (m *Member) stream(to protocol.MemberID, asking *memberInstance, term protocol.Term) {
	offered, of := member.SnapshotOffer{}, ""
	if asking != nil {
		of = m.w.named(asking.instance)
		offered.Instance, offered.Base = asking.instance, asking.inst.Core().Status().First-1
	}
	if !m.streams.Ask(to, offered.Instance) {
		return
	}
	m.push(member.ApplyItem{View: func(v member.StateView) {
		if v.Err != nil {
			m.toLoops.post(func() { m.streamed(to, order.Cursor{}) })
			return
		}
		s, err := taken(v.Meta, v.State)
		if err != nil {
			m.fail(err)
			return
		}
		m.streams.Begun(to, s.Cursor)
		m.w.events.Streams++
		m.w.tracef("%s   streams a snapshot at %s to %s%s", m.id, s.place(), to, of)
		offered.Cursor = s.Cursor
		m.w.stream(m, to, s, &offered, term)
	}})
}

// streamed ends a stream. It tells the instances that asked how far the stream brought the member.
// If the stream broke, that is 0.
func (m *Member) streamed(to protocol.MemberID, at order.Cursor) {
	for _, id := range m.streams.End(to) {
		if s := m.of(id); s != nil {
			s.step(protocol.SnapshotSent{To: to, Index: at.Point(id).Index})
		}
	}
}

// stream carries a snapshot from one member to another.
func (w *World) stream(m *Member, to protocol.MemberID, s *snapshot, o *member.SnapshotOffer, term protocol.Term) {
	life, ended := m.life, false
	report := func(at order.Cursor) {
		if ended {
			return
		}
		ended = true
		w.after(w.between(w.set.DelayMin, w.set.DelayMax), func() {
			if m.up && m.life == life {
				m.whenAwake(func() { m.streamed(to, at) })
			}
		})
	}
	broken := w.chance(w.set.StreamBreaks)
	w.offer(m, to, o, func(verdict member.SnapshotVerdict) {
		r := w.member(to)
		if verdict == member.IntakeLog {
			report(s.Cursor)
			return
		}
		running, up := r.running, r.up
		w.after(w.streamTime(len(s.state)), func() {
			if broken && !w.calm || w.severed(m, to) || !r.up || !up || r.running != running || !w.linked(m, life, r) || !r.up {
				w.events.BrokenStream++
				w.tracef("%s   stream of the snapshot at %s breaks", to, s.place())
				if verdict == member.IntakeTake {
					running.intake.Done(nil)
					if r.up && r.running == running {
						r.stateRefused()
					}
				}
				report(order.Cursor{})
				return
			}
			r.received(m.id, o.Instance, term, s, verdict, func(err error) {
				if err != nil {
					report(order.Cursor{})
				} else {
					report(s.Cursor)
				}
			})
			w.watchStream(r, &ended, func() { report(order.Cursor{}) })
		})
	})
}

// offer asks a member what it does with a snapshot. It asks again while the member receives another
// snapshot. If the member is down, the stream is sent all the same and breaks.
func (w *World) offer(from *Member, to protocol.MemberID, o *member.SnapshotOffer, then func(member.SnapshotVerdict)) {
	r, life := w.member(to), from.life
	if !r.up {
		then(member.IntakeKnown)
		return
	}
	have, _ := r.progress.At()
	verdict := r.intake.Offer(&have, r.progress.Repairing, o)
	if verdict != member.IntakeWait {
		then(verdict)
		return
	}
	w.events.Waits++
	w.after(w.set.Heartbeat, func() {
		if from.up && from.life == life {
			w.offer(from, to, o, then)
		}
	})
}

// streamTime is how long the stream of a snapshot takes.
func (w *World) streamTime(bytes int) time.Duration {
	each := time.Second / time.Duration(cmp.Or(w.set.StreamRate, 1_000_000))
	return w.between(w.set.DelayMin, 5*w.set.DelayMax+w.set.Heartbeat) + time.Duration(bytes)*each
}

// watchStream reports a failure if the receiver stops before it has answered.
func (w *World) watchStream(r *Member, ended *bool, report func()) {
	life := r.life
	w.after(w.set.Election, func() {
		switch {
		case *ended:
		case r.up && r.life == life:
			w.watchStream(r, ended, report)
		default:
			report()
		}
	})
}

// received makes a snapshot durable and offers it to all cores, not only to the core of the
// instance whose leader sent it. Only an answer tells the sender that the snapshot was received.
func (m *Member) received(from protocol.MemberID, asking protocol.InstanceID, term protocol.Term, s *snapshot, verdict member.SnapshotVerdict, answer func(error)) {
	offer := func() {
		for _, k := range m.inForce {
			if s.Cursor.Point(k.instance) == (order.Point{Instance: k.instance}) {
				continue // nothing of this instance, or it is not in force there
			}
			in := protocol.SnapshotReceived{From: from, Base: s.Base(k.instance)}
			if k.instance == asking {
				in.Term = term
			}
			k.step(in)
		}
	}
	if verdict != member.IntakeTake {
		offer()
		answer(nil)
		return
	}
	m.store(s, m.snaps.Receive, func(err error) {
		if err != nil {
			m.stateRefused()
			m.intake.Done(nil)
			answer(err)
			return
		}
		offer()
		if m.up {
			m.overRetired(&s.Meta)
		}
		if m.up && m.progress.Repairing {
			m.push(member.ApplyItem{Repair: true})
		}
		m.intake.Done(&s.Cursor)
		answer(nil)
	})
}

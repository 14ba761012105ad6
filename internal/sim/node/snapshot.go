package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/protocol"
)

var (
	SnapshotStreams = count.New("snapshot_streams", "streams")
	streamsBroken   = count.New("snapshot_streams_broken", "broken streams")
	snapshotsWaited = count.New("snapshots_that_waited_for_another_one", "snapshots that waited for another", count.Coded)
)

const (
	SnapDir = device.Root + "/snapshots"
	LogDir  = device.Root + "/log"
)

// standsAt formats a cursor's position in the log, for the trace.
func standsAt(at *order.Cursor) string {
	switch {
	case at.Keyed:
		return fmt.Sprint(at.Points)
	case !at.Merged():
		return fmt.Sprint(at.Point(FirstInstance).Index)
	}
	return fmt.Sprintf("%d.%d (position %d)", at.Next.Round, at.Next.Instance, at.Position)
}

// bytesOf writes and closes a view. No view is no bytes.
func bytesOf(view member.Snapshot) ([]byte, error) {
	if view == nil {
		return nil, nil
	}
	var b bytes.Buffer
	err := errors.Join(view.WriteTo(context.Background(), &b), view.Close())
	return b.Bytes(), err
}

// store writes a snapshot to a file. Then it calls done if the process still runs. If the process stops in between,
// the file may exist or not. A staged file is not a snapshot of the member yet.
func (m *Member) store(h datadir.SnapshotHeader, state []byte, write func(datadir.SnapshotHeader, func(io.Writer) error) error, staged bool, done func(error)) {
	body := func(w io.Writer) error { _, err := w.Write(state); return err }
	if !h.HasState {
		body = nil
	}
	m.Later(m.syncTime(), func() {
		err := write(h, body)
		switch {
		case errors.Is(err, device.ErrPower):
			m.fail(err)
			return
		case err == nil && !staged && m.Snapped.Before(&h.Cursor):
			m.Snapped = h.Cursor
		}
		// The process continues after a short delay, because it may stop at this point.
		m.Later(m.Env.Between(0, m.Env.Set.Heartbeat), func() { done(err) })
	})
}

// exchangeHost is the member as a StateExchange needs it.
type exchangeHost struct{ m *Member }

// Now implements snapshot.ExchangeHost, as the methods below do.
func (h exchangeHost) Now() time.Duration { return h.m.Clock() }

func (h exchangeHost) At() (order.Cursor, []protocol.Config) { return h.m.Progress.At() }

func (h exchangeHost) InForce() []protocol.InstanceID { return h.m.Crew.ids }

func (h exchangeHost) Tell(instance protocol.InstanceID, in protocol.Input) {
	if s := h.m.Of(instance); s != nil {
		s.Step(in)
	}
}

func (h exchangeHost) Push(it apply.ApplyItem) { h.m.Push(it) }

func (h exchangeHost) View(to protocol.MemberID) {
	x := h.m.Exchange
	h.m.Push(apply.ApplyItem{View: func(v apply.StateView) { x.Viewed(to, v) }})
}

func (h exchangeHost) Send(to protocol.MemberID, o *member.SnapshotOffer, view member.Snapshot) {
	m, w := h.m, h.m.Env
	state, err := bytesOf(view)
	if err != nil {
		x := m.Exchange
		m.toLoops.post(func() { x.Sent(to, err) })
		return
	}
	w.Count(SnapshotStreams)
	w.Tracef("%s   streams a snapshot at %s to %s%s", m.ID, standsAt(&o.Cursor), to, w.Named(o.Instance))
	s := &snapshotStream{w: w, from: m, life: m.Life, to: w.Member(to), offer: o, state: state, breaks: w.Chance(w.Set.StreamBreaks)}
	w.After(w.Trip(m.ID, to), s.begin)
}

func (h exchangeHost) Ended() {
	m := h.m
	waiting := m.offers
	m.offers = nil
	for _, again := range waiting {
		m.Later(m.Env.hop(), again)
	}
}

// AskState asks the other member's StateExchange.
func (h exchangeHost) AskState(to protocol.MemberID, q snapshot.StateQuestion) {
	m := h.m
	x, answered := m.Exchange, false
	answer := func(err error) {
		if !answered {
			answered = true
			m.Env.Tracef("%s   asked %s for its state, again %t: %v", m.ID, to, q.Again, err)
			x.Answered(q, err)
		}
	}
	life := m.Life
	m.ask(to, func(o *Member) {
		err := o.Exchange.StateAsked(m.ID, &q)
		m.Env.After(m.Env.Trip(o.ID, m.ID), func() { // the answer needs no link of its own
			if !m.Env.Net.Link(o.ID, m.ID).Cut {
				m.sameLife(life, func() { answer(err) })
			}
		})
	}, func() { answer(errNoAnswer) })
	m.Later(q.Within, func() { answer(errNoAnswer) })
}

var errNoAnswer, errBroken = errors.New("no answer"), errors.New("the stream broke")

// ask sends a request to another member. If that is unreachable, it calls failed, unless that is nil.
func (m *Member) ask(to protocol.MemberID, question func(*Member), failed func()) {
	w, life, o := m.Env, m.Life, m.Env.Member(to)
	w.After(w.Trip(m.ID, to), func() {
		switch {
		case !w.reaches(m, life, o):
			if failed != nil {
				m.sameLife(life, failed)
			}
		default:
			o.WhenAwake(func() { question(o) })
		}
	})
}

// reaches reports whether a member, in one of its incarnations, has a link to another one.
func (w *Environment) reaches(m *Member, life int, to *Member) bool {
	return m.Up && m.Life == life && !w.severed(m, to.ID) && to.Up && w.linked(m, life, to) && m.Up && to.Up
}

// snapshotStream carries a snapshot from one member to another.
type snapshotStream struct {
	w      *Environment
	from   *Member
	life   int // of from's process
	to     *Member
	in     int // incarnation of to
	offer  *member.SnapshotOffer
	state  []byte
	breaks bool // in the middle
	ended  bool
}

// begin announces the snapshot to the receiver.
func (s *snapshotStream) begin() {
	if !s.w.reaches(s.from, s.life, s.to) || s.to.Doubt != nil {
		s.end(errBroken)
		return
	}
	s.in = s.to.Life
	s.watch()
	s.to.WhenAwake(s.offered)
}

// offered asks the receiver whether it accepts the snapshot.
func (s *snapshotStream) offered() {
	w, m := s.w, s.to
	switch verdict, err := m.Exchange.Offered(s.from.ID, s.offer); {
	case err != nil:
		w.Violate(m.ID, err)
	case verdict == snapshot.IntakeWait:
		w.Count(snapshotsWaited)
		m.offers = append(m.offers, s.offered)
	case verdict == snapshot.IntakeTake:
		each := time.Second / time.Duration(cmp.Or(w.Set.StreamRate, 1_000_000))
		least, _ := w.Net.Path(&w.Set.Distances, s.from.ID, m.ID)
		w.After(w.Between(least, 5*w.Set.DelayMax+w.Set.Heartbeat)+time.Duration(len(s.state))*each, s.arrive)
	default:
		s.end(nil)
	}
}

// arrive delivers the last byte to the receiver, unless the stream breaks first.
func (s *snapshotStream) arrive() {
	w, m, x := s.w, s.to, s.to.Exchange
	if s.breaks && !w.Calm || !w.reaches(s.from, s.life, m) || m.Life != s.in || m.Doubt != nil {
		w.Count(streamsBroken)
		w.Tracef("%s   stream of the snapshot at %s breaks", m.ID, standsAt(&s.offer.Cursor))
		m.sameLife(s.in, func() { x.Received(s.from.ID, s.offer, errBroken) })
		s.end(errBroken)
		return
	}
	m.store(datadir.SnapshotHeader{Meta: s.offer.Meta, HasState: true}, s.state, m.Snaps.Receive, w.Set.Keyed, func(err error) {
		x.Received(s.from.ID, s.offer, err)
		s.end(err)
	})
}

// end reports the result of the stream to the sender.
func (s *snapshotStream) end(err error) {
	if s.ended {
		return
	}
	s.ended = true
	x := s.from.Exchange
	s.w.After(s.w.Trip(s.to.ID, s.from.ID), func() {
		s.from.sameLife(s.life, func() { x.Sent(s.to.ID, err) })
	})
}

// watch breaks the stream if the receiver stops before it has answered.
func (s *snapshotStream) watch() {
	s.w.After(s.w.Set.Election, func() {
		switch {
		case s.ended:
		case s.to.Up && s.to.Life == s.in:
			s.watch()
		default:
			s.end(errBroken)
		}
	})
}

package sim

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
	snapshotStreams = count.New("snapshot_streams", "streams")
	streamsBroken   = count.New("snapshot_streams_broken", "broken streams")
	snapshotsWaited = count.New("snapshots_that_waited_for_another_one", "snapshots that waited for another", count.Coded)
)

const (
	snapDir = device.Root + "/snapshots"
	logDir  = device.Root + "/log"
)

// standsAt is where a cursor stands in the log, for the trace.
func standsAt(at *order.Cursor) string {
	switch {
	case at.Keyed:
		return fmt.Sprint(at.Points)
	case !at.Merged():
		return fmt.Sprint(at.Point(firstInstance).Index)
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

// store writes a snapshot to a file. Then it calls done if the process still runs. If the process
// stops in between, the file may exist or not. What is staged is no snapshot of the member's yet.
func (m *Member) store(h datadir.SnapshotHeader, state []byte, write func(datadir.SnapshotHeader, func(io.Writer) error) error, staged bool, done func(error)) {
	body := func(w io.Writer) error { _, err := w.Write(state); return err }
	if !h.HasState {
		body = nil
	}
	m.later(m.syncTime(), func() {
		err := write(h, body)
		switch {
		case errors.Is(err, device.ErrPower):
			m.fail(err)
			return
		case err == nil && !staged && m.snapped.Before(&h.Cursor):
			m.snapped = h.Cursor
		}
		// The process goes on a little later, because it may stop at this point.
		m.later(m.w.Between(0, m.w.set.Heartbeat), func() { done(err) })
	})
}

// exchangeHost is what a StateExchange asks of the member around it.
type exchangeHost struct{ m *Member }

// Now implements snapshot.ExchangeHost, as the methods below do.
func (h exchangeHost) Now() time.Duration { return h.m.clock() }

func (h exchangeHost) At() (order.Cursor, []protocol.Config) { return h.m.progress.At() }

func (h exchangeHost) InForce() []protocol.InstanceID { return h.m.crew.ids }

func (h exchangeHost) Tell(instance protocol.InstanceID, in protocol.Input) {
	if s := h.m.of(instance); s != nil {
		s.step(in)
	}
}

func (h exchangeHost) Push(it apply.ApplyItem) { h.m.push(it) }

func (h exchangeHost) View(to protocol.MemberID) {
	x := h.m.exchange
	h.m.push(apply.ApplyItem{View: func(v apply.StateView) { x.Viewed(to, v) }})
}

func (h exchangeHost) Send(to protocol.MemberID, o *member.SnapshotOffer, view member.Snapshot) {
	m, w := h.m, h.m.w
	state, err := bytesOf(view)
	if err != nil {
		x := m.exchange
		m.toLoops.post(func() { x.Sent(to, err) })
		return
	}
	w.Count(snapshotStreams)
	w.Tracef("%s   streams a snapshot at %s to %s%s", m.id, standsAt(&o.Cursor), to, w.named(o.Instance))
	s := &snapshotStream{w: w, from: m, life: m.life, to: w.member(to), offer: o, state: state, breaks: w.Chance(w.set.StreamBreaks)}
	w.After(w.trip(m.id, to), s.begin)
}

func (h exchangeHost) Ended() {
	m := h.m
	waiting := m.offers
	m.offers = nil
	for _, again := range waiting {
		m.later(m.w.hop(), again)
	}
}

// AskState asks the other member's StateExchange.
func (h exchangeHost) AskState(to protocol.MemberID, q snapshot.StateQuestion) {
	m := h.m
	x, answered := m.exchange, false
	answer := func(err error) {
		if !answered {
			answered = true
			m.w.Tracef("%s   asked %s for its state, again %t: %v", m.id, to, q.Again, err)
			x.Answered(q, err)
		}
	}
	life := m.life
	m.ask(to, func(o *Member) {
		err := o.exchange.StateAsked(m.id, &q)
		m.w.After(m.w.trip(o.id, m.id), func() { // the answer needs no link of its own
			if !m.w.net.Link(o.id, m.id).Cut {
				m.sameLife(life, func() { answer(err) })
			}
		})
	}, func() { answer(errNoAnswer) })
	m.later(q.Within, func() { answer(errNoAnswer) })
}

var errNoAnswer, errBroken = errors.New("no answer"), errors.New("the stream broke")

// ask puts a question to another member. If that is out of reach, it calls failed; nil: nobody
// waits.
func (m *Member) ask(to protocol.MemberID, question func(*Member), failed func()) {
	w, life, o := m.w, m.life, m.w.member(to)
	w.After(w.trip(m.id, to), func() {
		switch {
		case !w.reaches(m, life, o):
			if failed != nil {
				m.sameLife(life, failed)
			}
		default:
			o.whenAwake(func() { question(o) })
		}
	})
}

// reaches reports whether a member, in one of its lives, has a link to another one.
func (w *environment) reaches(m *Member, life int, to *Member) bool {
	return m.up && m.life == life && !w.severed(m, to.id) && to.up && w.linked(m, life, to) && m.up && to.up
}

// snapshotStream carries a snapshot from one member to another.
type snapshotStream struct {
	w      *environment
	from   *Member
	life   int // of from
	to     *Member
	in     int // life of to
	offer  *member.SnapshotOffer
	state  []byte
	breaks bool // in the middle
	ended  bool
}

// begin tells the receiver what comes.
func (s *snapshotStream) begin() {
	if !s.w.reaches(s.from, s.life, s.to) || s.to.doubt != nil {
		s.end(errBroken)
		return
	}
	s.in = s.to.life
	s.watch()
	s.to.whenAwake(s.offered)
}

// offered asks the receiver what it does with the snapshot.
func (s *snapshotStream) offered() {
	w, m := s.w, s.to
	switch verdict, err := m.exchange.Offered(s.from.id, s.offer); {
	case err != nil:
		w.Violate(m.id, err)
	case verdict == snapshot.IntakeWait:
		w.Count(snapshotsWaited)
		m.offers = append(m.offers, s.offered)
	case verdict == snapshot.IntakeTake:
		each := time.Second / time.Duration(cmp.Or(w.set.StreamRate, 1_000_000))
		least, _ := w.net.Path(&w.set.Distances, s.from.id, m.id)
		w.After(w.Between(least, 5*w.set.DelayMax+w.set.Heartbeat)+time.Duration(len(s.state))*each, s.arrive)
	default:
		s.end(nil)
	}
}

// arrive brings the last byte to the receiver, unless the stream breaks before.
func (s *snapshotStream) arrive() {
	w, m, x := s.w, s.to, s.to.exchange
	if s.breaks && !w.calm || !w.reaches(s.from, s.life, m) || m.life != s.in || m.doubt != nil {
		w.Count(streamsBroken)
		w.Tracef("%s   stream of the snapshot at %s breaks", m.id, standsAt(&s.offer.Cursor))
		m.sameLife(s.in, func() { x.Received(s.from.id, s.offer, errBroken) })
		s.end(errBroken)
		return
	}
	m.store(datadir.SnapshotHeader{Meta: s.offer.Meta, HasState: true}, s.state, m.snaps.Receive, w.set.Keyed, func(err error) {
		x.Received(s.from.id, s.offer, err)
		s.end(err)
	})
}

// end tells the sender how the stream ended.
func (s *snapshotStream) end(err error) {
	if s.ended {
		return
	}
	s.ended = true
	x := s.from.exchange
	s.w.After(s.w.trip(s.to.id, s.from.id), func() {
		s.from.sameLife(s.life, func() { x.Sent(s.to.id, err) })
	})
}

// watch breaks the stream if the receiver stops before it has answered.
func (s *snapshotStream) watch() {
	s.w.After(s.w.set.Election, func() {
		switch {
		case s.ended:
		case s.to.up && s.to.life == s.in:
			s.watch()
		default:
			s.end(errBroken)
		}
	})
}

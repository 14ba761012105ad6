package sim

import (
	"time"

	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

var (
	bodiesMadeWhole    = count.New("bodies_made_whole", "bodies made whole")
	bodiesRestored     = count.New("bodies_restored", "bodies restored")
	damagedBodiesFound = count.New("damaged_bodies_found", "damaged bodies found")
	wholeCopiesTrimmed = count.New("whole_copies_trimmed", "whole copies trimmed", count.Coded)
	bodiesWanted       = count.New("bodies_wanted_by_new_leaders", "bodies wanted by new leaders", count.Coded)
	bodiesRestriped    = count.New("bodies_made_whole_for_fewer_members", "bodies made whole for fewer members", count.Coded)
)

// bodyWorld is what surrounds a member's bodies, in one of its lives.
type bodyWorld struct {
	m *Member
	r *running
}

// alive reports whether this life still goes on.
func (w *bodyWorld) alive() bool { return w.m.up && w.m.running == w.r }

// Now implements body.BodyWorld.
func (w *bodyWorld) Now() time.Duration { return w.m.clock() }

// Send implements body.BodyWorld.
func (w *bodyWorld) Send(msg *protocol.Message) bool {
	if w.alive() {
		w.m.judgeServed(msg)
		w.m.w.send(msg)
	}
	return true
}

// Kept implements body.BodyWorld.
func (w *bodyWorld) Kept(f func(*body.Kept)) { f(w.r.body.kept) }

// Cache implements body.BodyWorld.
func (w *bodyWorld) Cache(f func(*body.BodyCache)) { f(w.r.body.cache) }

// Inbox implements body.BodyWorld.
func (w *bodyWorld) Inbox(f func(*body.BodyInbox)) {
	f(w.r.body.inbox)
	w.m.wakeBodies()
}

// Config implements body.BodyWorld.
func (w *bodyWorld) Config(instance protocol.InstanceID) protocol.Config {
	if s := w.m.among(w.m.inForce, instance); s != nil {
		return s.config()
	}
	return w.m.applier.Config()
}

// Memberships implements body.BodyWorld.
func (w *bodyWorld) Memberships() (all []body.Membership) {
	for _, s := range w.m.inForce {
		all = append(all, body.Membership{Logged: s.status.Config, Applied: s.config()})
	}
	return all
}

// InLoop implements body.BodyWorld.
func (w *bodyWorld) InLoop(ref protocol.BodyRef, f func(upgrading bool)) {
	s := w.m.among(w.m.inForce, ref.Instance)
	if s == nil {
		f(false)
		return
	}
	s.do(func() { f(s.hosted.Upgrading(ref)) })
}

// Submit implements body.BodyWorld.
func (w *bodyWorld) Submit(records []wal.Record, done func()) {
	m := w.m
	if !w.alive() {
		return
	}
	nth := m.writer.count + 1
	for _, r := range records {
		ref := body.RefOf(r.Body)
		m.w.Violate(m.id, m.w.court.Of(ref.Instance).Bodies.Restore(m.judged(), w.term(ref.Instance), nth, judged(r.Body)))
		m.w.Tracef("%s   writes body %d as %s", m.id, ref.Index, protocol.Form(r.Body.Form))
		switch whole := protocol.Form(r.Body.Form) == protocol.FormWhole; {
		case w.r.body.kept.Missing(ref):
			m.w.Count(bodiesRestored)
		case whole:
			m.w.Count(bodiesRestriped)
		default:
			m.w.Count(wholeCopiesTrimmed)
		}
	}
	m.writer.Submit(records, func(err error) {
		if err != nil {
			m.fail(err)
			return
		}
		for _, r := range records {
			m.w.court.Of(protocol.InstanceID(r.Instance)).Bodies.Durable(m.judged(), nth)
		}
		done()
	})
}

// term is the member's term in an instance, 0 in one that is retired.
func (w *bodyWorld) term(instance protocol.InstanceID) uint64 {
	if s := w.m.among(w.m.inForce, instance); s != nil {
		return uint64(s.inst.Core().Status().Term)
	}
	return 0
}

// Made implements body.BodyWorld.
func (w *bodyWorld) Made(ref protocol.BodyRef, body []byte) {
	w.m.w.Count(bodiesWanted)
	w.m.toLoops.post(func() {
		if s := w.m.among(w.m.inForce, ref.Instance); s != nil {
			s.step(protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: body})
		}
	})
}

// Apart implements body.BodyWorld.
func (w *bodyWorld) Apart(f func()) { w.m.later(w.m.w.hop(), f) }

// Report implements body.BodyWorld.
func (w *bodyWorld) Report(r body.BodyReport) {
	m := w.m
	switch r.What {
	case body.BodyDamaged:
		if !m.w.court.Of(r.Ref.Instance).Bodies.Damaged(m.judged(), uint64(r.Ref.Index)) {
			m.w.Violate(m.id, r.Err)
		}
		if r.News {
			m.w.Count(damagedBodiesFound)
			m.w.Tracef("%s   finds its part of body %d damaged", m.id, r.Ref.Index)
		}
	case body.BodyGathered:
		m.w.Count(bodiesMadeWhole)
	case body.BodyUnwritten:
		m.w.Violate(m.id, r.Err)
	default:
		m.w.Tracef("%s   body %d: %v", m.id, r.Ref.Index, r.Err)
	}
}

// judgeServed judges the bytes that a member sends to another one.
func (m *Member) judgeServed(answer *protocol.Message) {
	if answer.Type != protocol.MsgFetchResp || answer.Reject || len(answer.Blob) == 0 {
		return
	}
	b, _ := m.body.store.Find(uint32(answer.Instance), uint64(answer.Holdings[0].Index))
	b.Form, b.Bytes = uint8(answer.Holdings[0].Form), answer.Blob
	m.w.Violate(m.id, m.w.court.Of(answer.Instance).Bodies.Serve(m.judged(), judged(&b)))
}

package node

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
	WholeCopiesTrimmed = count.New("whole_copies_trimmed", "whole copies trimmed", count.Coded)
	bodiesWanted       = count.New("bodies_wanted_by_new_leaders", "bodies wanted by new leaders", count.Coded)
	bodiesRestriped    = count.New("bodies_made_whole_for_fewer_members", "bodies made whole for fewer members", count.Coded)
)

// bodyWorld is the environment of a member's body keeper, in one incarnation.
type bodyWorld struct {
	m *Member
	r *Running
}

// alive reports whether this incarnation still runs.
func (w *bodyWorld) alive() bool { return w.m.Up && w.m.Running == w.r }

// Now implements body.bodyWorld.
func (w *bodyWorld) Now() time.Duration { return w.m.Clock() }

// Send implements body.bodyWorld.
func (w *bodyWorld) Send(msg *protocol.Message) bool {
	if w.alive() {
		judgeServed(w.m, msg)
		w.m.Env.Send(msg)
	}
	return true
}

// Kept implements body.bodyWorld.
func (w *bodyWorld) Kept(f func(*body.Kept)) { f(w.r.Body.kept) }

// Cache implements body.bodyWorld.
func (w *bodyWorld) Cache(f func(*body.BodyCache)) { f(w.r.Body.cache) }

// Inbox implements body.bodyWorld.
func (w *bodyWorld) Inbox(f func(*body.BodyInbox)) {
	f(w.r.Body.inbox)
	w.m.Body.wake()
}

// Config implements body.bodyWorld.
func (w *bodyWorld) Config(instance protocol.InstanceID) protocol.Config {
	if s := w.m.Among(w.m.InForce, instance); s != nil {
		return s.Config()
	}
	return w.m.Applier.Config()
}

// Memberships implements body.bodyWorld.
func (w *bodyWorld) Memberships() (all []body.Membership) {
	for _, s := range w.m.InForce {
		all = append(all, body.Membership{Logged: s.status.Config, Applied: s.Config()})
	}
	return all
}

// InLoop implements body.bodyWorld.
func (w *bodyWorld) InLoop(ref protocol.BodyRef, f func(upgrading bool)) {
	s := w.m.Among(w.m.InForce, ref.Instance)
	if s == nil {
		f(false)
		return
	}
	s.Do(func() { f(s.Hosted.Upgrading(ref)) })
}

// Submit implements body.bodyWorld.
func (w *bodyWorld) Submit(records []wal.Record, done func()) {
	m := w.m
	if !w.alive() {
		return
	}
	nth := m.Writer.count + 1
	for _, r := range records {
		ref := body.RefOf(r.Body)
		m.Env.Violate(m.ID, m.Env.Court.Of(ref.Instance).Bodies.Restore(m.Judged(), w.term(ref.Instance), nth, judged(r.Body)))
		m.Env.Tracef("%s   writes body %d as %s", m.ID, ref.Index, protocol.Form(r.Body.Form))
		switch whole := protocol.Form(r.Body.Form) == protocol.FormWhole; {
		case w.r.Body.kept.Missing(ref):
			m.Env.Count(bodiesRestored)
		case whole:
			m.Env.Count(bodiesRestriped)
		default:
			m.Env.Count(WholeCopiesTrimmed)
		}
	}
	m.Writer.Submit(records, func(err error) {
		if err != nil {
			m.fail(err)
			return
		}
		for _, r := range records {
			m.Env.Court.Of(protocol.InstanceID(r.Instance)).Bodies.Durable(m.Judged(), nth)
		}
		done()
	})
}

// term returns the member's term in an instance, 0 if the instance is retired.
func (w *bodyWorld) term(instance protocol.InstanceID) uint64 {
	if s := w.m.Among(w.m.InForce, instance); s != nil {
		return uint64(s.Inst.Core().Status().Term)
	}
	return 0
}

// Made implements body.bodyWorld.
func (w *bodyWorld) Made(ref protocol.BodyRef, body []byte) {
	w.m.Env.Count(bodiesWanted)
	w.m.toLoops.post(func() {
		if s := w.m.Among(w.m.InForce, ref.Instance); s != nil {
			s.Step(protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: body})
		}
	})
}

// Apart implements body.bodyWorld.
func (w *bodyWorld) Apart(f func()) { w.m.Later(w.m.Env.hop(), f) }

// Report implements body.bodyWorld.
func (w *bodyWorld) Report(r body.BodyReport) {
	m := w.m
	switch r.What {
	case body.BodyDamaged:
		if !m.Env.Court.Of(r.Ref.Instance).Bodies.Damaged(m.Judged(), uint64(r.Ref.Index)) {
			m.Env.Violate(m.ID, r.Err)
		}
		if r.News {
			m.Env.Count(damagedBodiesFound)
			m.Env.Tracef("%s   finds its part of body %d damaged", m.ID, r.Ref.Index)
		}
	case body.BodyGathered:
		m.Env.Count(bodiesMadeWhole)
	case body.BodyUnwritten:
		m.Env.Violate(m.ID, r.Err)
	default:
		m.Env.Tracef("%s   body %d: %v", m.ID, r.Ref.Index, r.Err)
	}
}

// judgeServed checks the bytes that a member sends to another one.
func judgeServed(m *Member, answer *protocol.Message) {
	if answer.Type != protocol.MsgFetchResp || answer.Reject || len(answer.Blob) == 0 {
		return
	}
	b, _ := m.Body.Store.Find(uint32(answer.Instance), uint64(answer.Holdings[0].Index))
	b.Form, b.Bytes = uint8(answer.Holdings[0].Form), answer.Blob
	m.Env.Violate(m.ID, m.Env.Court.Of(answer.Instance).Bodies.Serve(m.Judged(), judged(&b)))
}

package replica

import (
	"context"
	"time"

	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// The methods below implement body.BodyWorld.

// Now implements body.BodyWorld.
func (b *bodies) Now() time.Duration { return b.r.now() }

// Send implements body.BodyWorld.
func (b *bodies) Send(m *protocol.Message) bool {
	parts, err := b.r.framer.Frame(m)
	return err == nil && b.r.links.Send(uint64(m.To), instance.BodyStreamOf(m.Instance), parts)
}

// Kept implements body.BodyWorld.
func (b *bodies) Kept(f func(*body.Kept)) {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	f(b.kept)
}

// Cache implements body.BodyWorld.
func (b *bodies) Cache(f func(*body.BodyCache)) {
	b.cmu.Lock()
	defer b.cmu.Unlock()
	f(b.cache)
}

// Inbox implements body.BodyWorld.
func (b *bodies) Inbox(f func(*body.BodyInbox)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.inbox)
	poke(b.wake)
}

// Config implements body.BodyWorld.
func (b *bodies) Config(instance protocol.InstanceID) protocol.Config {
	return b.r.apply.config(instance)
}

// Memberships implements body.BodyWorld.
func (b *bodies) Memberships() (all []body.Membership) {
	for _, l := range b.r.all() {
		all = append(all, body.Membership{Logged: l.status.Load().Config, Applied: b.r.apply.config(l.id)})
	}
	return all
}

// InLoop implements body.BodyWorld.
func (b *bodies) InLoop(ref protocol.BodyRef, f func(upgrading bool)) {
	if l := b.r.find(ref.Instance); l != nil {
		l.do(func() { f(l.hosted.Upgrading(ref)) })
		return
	}
	f(false)
}

// Submit implements body.BodyWorld.
func (b *bodies) Submit(records []wal.Record, done func()) {
	b.r.writer.Submit(records, func(err error) {
		if err != nil {
			b.r.fail(err)
			return
		}
		done()
	})
}

// Made implements body.BodyWorld.
func (b *bodies) Made(ref protocol.BodyRef, body []byte) {
	if l := b.r.find(ref.Instance); l != nil {
		l.input(protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: body}, 0)
	}
}

// Apart implements body.BodyWorld.
func (b *bodies) Apart(f func()) { b.r.spawn(func(context.Context) { f() }) }

// Report implements body.BodyWorld.
func (b *bodies) Report(r body.BodyReport) {
	log := b.r.log.With("instance", r.Ref.Instance, "index", r.Ref.Index)
	switch r.What {
	case body.BodyDamaged:
		if r.News {
			log.Error("a body on disk is damaged; restoring it from other members", "event", "damage", "err", r.Err)
		}
	case body.BodyWrong:
		log.Error("a member sent bytes that are not of the body that was asked for", "member", r.From)
	case body.BodyUngiven:
		log.Warn("a new leader lacks a body", "err", r.Err)
	case body.BodyUnfilled:
		log.Error("a body that is missing cannot be restored yet", "err", r.Err)
	case body.BodyUnwritten:
		log.Error("row of a body cannot be computed", "err", r.Err)
	case body.BodyGathered:
	}
}

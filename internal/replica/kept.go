package replica

import (
	"context"
	"sync/atomic"

	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/protocol"
)

// instanceBodies tells an instance's event loop that what is known of its bodies has changed.
type instanceBodies struct {
	instance protocol.InstanceID
	changed  atomic.Bool // the loop must ask for news
	wake     chan struct{}
}

// host begins to tell an instance's event loop when there is news for its core.
func (b *bodies) host(instance protocol.InstanceID) *instanceBodies {
	k := &instanceBodies{instance: instance, wake: make(chan struct{}, 1)}
	b.kmu.Lock()
	b.cores = append(b.cores, k)
	b.kmu.Unlock()
	return k
}

// hooks returns functions that are called with kmu held.
func (b *bodies) hooks() body.KeptHooks {
	return body.KeptHooks{
		Changed: func(instance protocol.InstanceID) {
			for _, k := range b.cores {
				if k.instance == instance {
					k.changed.Store(true)
					poke(k.wake)
				}
			}
		},
		Wanting: func() { poke(b.wake) },
		Released: func(protocol.InstanceID, body.BodyKey) {
			if w := b.r.writer; w != nil {
				w.Tidy()
			}
		},
	}
}

// news returns what a core must be told of this member's bodies. Its event loop calls it after it has
// carried out everything, so that no entry comes in between.
func (b *bodies) news(k *instanceBodies) (in protocol.Bodies, changed bool) {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	return b.kept.News(k.instance)
}

// committed takes in the entries that an instance committed.
func (b *bodies) committed(k *instanceBodies, entries []protocol.Entry) {
	some := false
	for i := range entries {
		some = some || entries[i].BodySize > 0
	}
	if some {
		b.Cache(func(c *body.BodyCache) { c.Committed(k.instance, entries) })
		b.Kept(func(t *body.Kept) { t.Committed(k.instance, entries) })
	}
}

// given says that the state machine is given a command with this body now.
func (b *bodies) given(ref protocol.BodyRef) { b.Kept(func(t *body.Kept) { t.Given(ref) }) }

// passed says that the state machine will never be given a command with this body.
func (b *bodies) passed(ref protocol.BodyRef) { b.Kept(func(t *body.Kept) { t.Passed(ref) }) }

// ReleaseBody says that the state machine does not refer to a body any more. It must never refer to
// it again, not even after it is restored from a snapshot.
func (r *Replica) ReleaseBody(ref protocol.BodyRef) {
	r.bodies.Kept(func(t *body.Kept) { t.Release(ref) })
	r.bodies.Cache(func(c *body.BodyCache) { c.Drop(ref) })
}

// compacted takes in that an instance's log has no entries up to floor any more. Then it gives up the bodies that no
// one refers to, on another goroutine.
func (b *bodies) compacted(k *instanceBodies, floor protocol.Index) {
	b.Kept(func(t *body.Kept) { t.Compacted(k.instance, floor) })
	b.r.spawn(func(context.Context) { b.Kept((*body.Kept).Sweep) })
}

// installing says that an instance is about to replace the state with a snapshot.
func (b *bodies) installing(k *instanceBodies, base protocol.Index) {
	b.Kept(func(t *body.Kept) { t.Installing(k.instance, base) })
}

// installed takes in which bodies the state of an installed snapshot refers to. The log of one
// instance begins after base now. The logs of the others continue.
func (b *bodies) installed(instance protocol.InstanceID, base protocol.Index, a *apply.Applier) error {
	began, missing := b.r.now(), 0
	refs, _, err := body.LiveBodies(a.Machine())
	if err != nil {
		return err
	}
	cursor := a.Cursor()
	b.Kept(func(t *body.Kept) {
		missing = t.Installed(instance, base, &cursor, refs)
		t.Sweep()
	})
	if len(refs) > 0 {
		b.r.log.Info("bodies of the snapshot", "referenced", len(refs), "missing", missing, "took", b.r.now()-began)
	}
	return nil
}

// mended is like installed, for a state that replaced a damaged one. No log changes then.
func (b *bodies) mended(a *apply.Applier) error {
	refs, _, err := body.LiveBodies(a.Machine())
	if err != nil {
		return err
	}
	cursor := a.Cursor()
	b.Kept(func(t *body.Kept) {
		t.Mended(&cursor, refs)
		t.Sweep()
	})
	return nil
}

// obey takes in what the applied configurations say about this member's bodies.
func (b *bodies) obey(instances []protocol.InstanceID, configs []protocol.Config) {
	b.Kept(func(t *body.Kept) {
		for _, id := range t.Obey(instances, configs) {
			b.r.log.Info("which bodies this member holds whole has changed", "instance", id,
				"to be made whole", t.Of(id).Short())
		}
	})
}

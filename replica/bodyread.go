package replica

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// Body returns a whole body, verified. It is shared: nobody may change it. A body that is
// not held whole here is fetched from other members; several readers of one fetch it once.
func (r *Replica) Body(ctx context.Context, ref protocol.BodyRef) ([]byte, error) {
	if ref.Size == 0 {
		return nil, nil
	}
	if body := r.bodies.cache.get(ref); body != nil {
		return body, nil
	}
	select {
	case r.bodies.readers <- struct{}{}:
	case <-ctx.Done():
		return nil, errors.Join(&member.BodyError{Ref: ref, Need: max(1, int(ref.K))}, ctx.Err())
	case <-r.stop:
		return nil, r.stopped()
	}
	f := r.bodies.join(ref)
	<-r.bodies.readers
	select {
	case <-f.done:
		return f.body, f.err
	case <-ctx.Done():
		return nil, errors.Join(&member.BodyError{Ref: ref, Need: max(1, int(ref.K))}, ctx.Err())
	case <-r.stop:
		return nil, r.stopped()
	}
}

// join waits for a body with everybody else who does. The first one begins.
func (b *bodies) join(ref protocol.BodyRef) *flight {
	b.mu.Lock()
	f := b.flights[ref]
	if f != nil {
		b.mu.Unlock()
		return f
	}
	f = &flight{done: make(chan struct{})}
	b.flights[ref] = f
	b.mu.Unlock()
	land := func(a member.Answer) {
		b.mu.Lock()
		delete(b.flights, ref)
		b.mu.Unlock()
		if f.body, f.err = a.Body, a.Err; a.Err == nil {
			b.cache.add(ref, a.Body)
		}
		close(f.done)
	}
	have := b.local(ref)
	if have.Form == protocol.FormWhole {
		land(member.Answer{Body: have.Bytes})
		return f
	}
	q := member.Question{Ref: ref, Until: b.r.now() + bodyPatience}
	if have.Form != protocol.FormNone {
		q.Have = &have
	}
	if err := b.ask(q, land); err != nil {
		land(member.Answer{Err: err})
	}
	return f
}

// committed takes in what an instance committed: from here on the entries are without
// bodies, which applying does not need. A whole one is likely to be read soon.
func (b *bodies) committed(k *keptBodies, entries []protocol.Entry) {
	some := false
	for i := range entries {
		some = some || entries[i].BodySize > 0
	}
	if !some {
		return
	}
	b.kmu.Lock()
	k.retention.Committed(entries)
	lacking := k.retention.Lacking() > 0
	b.kmu.Unlock()
	k.changed.Store(true)
	if lacking {
		poke(b.wake)
	}
	for i := range entries {
		e := &entries[i]
		if e.BodySize > 0 && len(e.Body) == int(e.BodySize) && e.Form == protocol.FormWhole {
			b.cache.add(e.Ref(k.instance), e.Body)
		}
		e.Body = nil
	}
}

// given says that the state machine gets a command with this body now.
func (b *bodies) given(ref protocol.BodyRef) {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	if k := b.of(ref.Instance); k != nil {
		k.retention.Given(ref)
	}
}

// passed says that the state machine will never be given a command with this body.
func (b *bodies) passed(ref protocol.BodyRef) {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	if k := b.of(ref.Instance); k != nil {
		k.retention.Passed(ref)
		k.changed.Store(true)
	}
}

// ReleaseBody says that the state machine does not refer to a body any more, and never
// will again, whatever it is restored from.
func (r *Replica) ReleaseBody(ref protocol.BodyRef) {
	b := r.bodies
	b.kmu.Lock()
	dead := false
	if k := b.of(ref.Instance); k != nil {
		dead = k.retention.Release(ref)
		k.changed.Store(true)
	}
	b.kmu.Unlock()
	b.cache.drop(ref)
	if dead {
		b.store.Release(uint32(ref.Instance), uint64(ref.Index))
	}
}

// compacted forgets the bodies of entries that an instance's log does not hold any more.
func (b *bodies) compacted(k *keptBodies, floor protocol.Index) {
	b.with(k, func(t *member.Retention) { t.Compact(floor) })
	b.r.spawn(func(context.Context) { b.sweep() })
}

// installing says that a snapshot is about to replace the state, because of an instance.
func (b *bodies) installing(k *keptBodies, base protocol.Index) {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	k.retention.Installing(base)
}

// installed takes over the references of a state that a snapshot brought. The log of one instance
// begins at base now; the other instances go on. Bodies that are missing are fetched in the
// background.
func (b *bodies) installed(instance protocol.InstanceID, base protocol.Index, a *member.Applier) error {
	began := time.Now()
	refs, _, err := member.LiveBodies(a.Machine())
	if err != nil {
		return err
	}
	cursor := a.Cursor()
	b.kmu.Lock()
	kept := slices.Clone(b.kept)
	b.kmu.Unlock()
	lacking := 0
	for _, k := range kept {
		b.with(k, func(t *member.Retention) {
			if k.instance == instance {
				t.Restart(base, refs)
			}
			t.Renew(0, cursor.Point(k.instance).Index, refs)
			lacking += t.Lacking()
		})
	}
	b.sweep()
	if len(refs) > 0 {
		b.r.log.Info("bodies of the snapshot", "referenced", len(refs), "missing", lacking, "took", time.Since(began))
	}
	return nil
}

func (b *bodies) sweep() {
	b.kmu.Lock()
	kept := slices.Clone(b.kept)
	b.kmu.Unlock()
	for _, k := range kept {
		b.kmu.Lock()
		dead := k.retention.Dead(b.store)
		b.kmu.Unlock()
		for _, key := range dead {
			b.store.Release(uint32(k.instance), uint64(key.Index))
		}
	}
}

// BodyStats is what a member knows of its bodies.
type BodyStats struct {
	// Held is how many bodies are held here, whole or in part.
	Held int
	// LiveBytes are those of the bodies held here, in the form held; TotalBytes what their
	// files take.
	LiveBytes, TotalBytes int64
	// Missing bodies are known to be lacking here and are being restored.
	Missing int
	// Short bodies are held as rows here and are being made whole, because rows would be too few.
	Short int
	// Fetched counts bodies made whole from other members' fragments, Served the fragments
	// sent to others, Corrupt the bodies found damaged on disk, Repaired those restored,
	// Trimmed whole bodies cut to a row.
	Fetched, Served, Corrupt, Repaired, Trimmed uint64
	// Failing says why a missing body could not be restored; nil if the last attempt did.
	Failing error
}

func (b *bodies) stats() BodyStats {
	live, total := b.store.Size()
	s := BodyStats{
		Held: b.store.Count(), LiveBytes: live, TotalBytes: total, Missing: b.lacking(), Fetched: b.count.fetched.Load(), Served: b.count.served.Load(),
		Short: b.short(), Corrupt: b.count.corrupt.Load(), Repaired: b.count.repaired.Load(), Trimmed: b.count.trimmed.Load(),
	}
	if e := b.failing.Load(); e != nil && s.Missing > 0 {
		s.Failing = e
	}
	return s
}

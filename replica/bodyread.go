package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// Body returns a whole body, verified. It is shared: nobody may change it. A body that is
// not held whole here is fetched from other members; several readers of one fetch it once.
func (r *Replica) Body(ctx context.Context, ref protocol.BodyRef) ([]byte, error) {
	if ref.Size == 0 {
		return nil, nil
	}
	if body := r.bodies.cached(ref); body != nil {
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
	b.Fetch(ref, func(a member.Answer) {
		b.mu.Lock()
		delete(b.flights, ref)
		b.mu.Unlock()
		if f.body, f.err = a.Body, a.Err; a.Err == nil {
			b.Cache(func(c *member.BodyCache) { c.Add(ref, a.Body) })
		}
		close(f.done)
	})
	return f
}

func (b *bodies) cached(ref protocol.BodyRef) (body []byte) {
	b.Cache(func(c *member.BodyCache) { body = c.Get(ref) })
	return body
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
	s := BodyStats{Held: b.store.Count(), LiveBytes: live, TotalBytes: total}
	b.Kept(func(k *member.Kept) {
		s.Missing, s.Short = k.Lacking(), k.Short()
		s.Fetched, s.Served, s.Corrupt, s.Repaired, s.Trimmed = k.Count.Fetched, k.Count.Served, k.Count.Corrupt, k.Count.Repaired, k.Count.Trimmed
		if k.Failing != nil && s.Missing > 0 {
			s.Failing = k.Failing
		}
	})
	return s
}

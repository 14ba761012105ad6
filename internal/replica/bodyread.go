package replica

import (
	"context"
	"errors"

	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/protocol"
)

// Body returns a whole body, verified. The bytes are shared: no one may change them. If this member does not hold the
// body whole, it gathers it from other members. Several callers that want the same body at the same time share one
// answer. If ctx ends first, the error is both a [*body.BodyError] and ctx's.
func (r *Replica) Body(ctx context.Context, ref protocol.BodyRef) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	if r.ctx.Err() != nil {
		return nil, r.stopped()
	}
	if ref.Size == 0 {
		return nil, nil
	}
	if body := r.bodies.cached(ref); body != nil {
		return body, nil
	}
	f := r.bodies.flying(ref)
	if f == nil {
		f = r.bodies.begin(ctx, ref)
	}
	if f != nil {
		select {
		case <-f.done:
			return f.body, f.err
		case <-ctx.Done():
		case <-r.stop:
		}
	}
	if r.ctx.Err() != nil {
		return nil, r.stopped()
	}
	return nil, errors.Join(&body.BodyError{Ref: ref, Need: max(1, int(ref.K))}, ctx.Err())
}

// flying returns what waits for a body already; nil: no one does.
func (b *bodies) flying(ref protocol.BodyRef) *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flights[ref]
}

// begin reads a body as soon as the bytes of those that are being read allow it; nil: ctx or the
// member ended before.
func (b *bodies) begin(ctx context.Context, ref protocol.BodyRef) *flight {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.r.ctx, cancel)()
	bytes := min(max(int64(ref.Size), bodyReadBytes/bodyReaders), bodyReadBytes)
	if b.reads.Acquire(ctx, bytes) != nil {
		return nil
	}
	defer b.reads.Release(bytes)
	return b.join(ref)
}

// join adds a caller to those that wait for a body. The first caller starts the read.
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
	b.Fetch(ref, func(a body.Answer) {
		b.mu.Lock()
		delete(b.flights, ref)
		b.mu.Unlock()
		if f.body, f.err = a.Body, a.Err; a.Err == nil {
			b.Cache(func(c *body.BodyCache) { c.Add(ref, a.Body) })
		}
		close(f.done)
	})
	return f
}

func (b *bodies) cached(ref protocol.BodyRef) (bytes []byte) {
	b.Cache(func(c *body.BodyCache) { bytes = c.Get(ref) })
	return bytes
}

// BodyStats is what a member knows of its bodies.
type BodyStats struct {
	// Held is how many bodies are held here, whole or as rows.
	Held int
	// LiveBytes are the bytes of the bodies held here, in the form that is held. TotalBytes are
	// the bytes of the files with bodies.
	LiveBytes, TotalBytes int64
	// Missing is how many bodies are known to be missing here. They are being restored.
	Missing int
	// Short is how many bodies are held as rows here but must be whole, because the rows would be
	// too few. They are being made whole.
	Short int
	// Fetched counts the bodies that were made whole from other members' fragments, Served the
	// fragments that were sent to others, Corrupt the bodies that were found damaged on disk,
	// Repaired the bodies that were restored, Trimmed the whole bodies that were replaced by a row.
	Fetched, Served, Corrupt, Repaired, Trimmed uint64
	// Failing says why a missing body could not be restored. It is nil if the last attempt
	// succeeded or no body is missing.
	Failing error
}

func (b *bodies) stats() BodyStats {
	live, total := b.store.Size()
	s := BodyStats{Held: b.store.Count(), LiveBytes: live, TotalBytes: total}
	b.Kept(func(k *body.Kept) {
		s.Missing, s.Short = k.Lacking(), k.Short()
		s.Fetched, s.Served, s.Corrupt, s.Repaired, s.Trimmed = k.Count.Fetched, k.Count.Served, k.Count.Corrupt,
			k.Count.Repaired, k.Count.Trimmed
		if k.Failing != nil && s.Missing > 0 {
			s.Failing = k.Failing
		}
	})
	return s
}

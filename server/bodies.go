package server

import (
	"context"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// bodies is the log as the store sees it: where large values are kept.
type bodies struct{ s *Server }

// Body implements store.Bodies. It does not wait longer than a request may.
func (b bodies) Body(ctx context.Context, ref store.BodyRef) ([]byte, error) {
	if err := b.opened(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.s.timeout)
	defer cancel()
	return b.s.log.Body(ctx, logRef(ref))
}

// Release implements store.Bodies.
func (b bodies) Release(ref store.BodyRef) {
	b.s.log.ReleaseBody(logRef(ref)) // the store began when the log was open
}

// opened waits until the log is open: the store opens first.
func (b bodies) opened() error {
	select {
	case <-b.s.started:
		return nil
	case <-b.s.stopping:
		return braid.ErrStopped
	}
}

func logRef(r store.BodyRef) braid.BodyRef {
	return braid.BodyRef{
		Instance: braid.InstanceID(r.Instance), Index: braid.Index(r.Index), Term: braid.Term(r.Term),
		K: r.K, Size: r.Size, Digest: r.Digest,
	}
}

func storeRef(r *braid.BodyRef) *store.BodyRef {
	if r == nil {
		return nil
	}
	return &store.BodyRef{
		Instance: uint32(r.Instance), Index: uint64(r.Index), Term: uint64(r.Term), K: r.K, Size: r.Size, Digest: r.Digest,
	}
}

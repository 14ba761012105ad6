package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/braidlog/braid/internal/store/sums"
)

// A snapshot between members is a magic, the position and the length of the database (8
// bytes each, big endian), the database file, and the SHA-256 of all that.
const (
	snapshotMagic  = "braidst1"
	snapshotHeader = len(snapshotMagic) + 8 + 8
)

// Snapshot is a frozen view of a store: its database at a position.
type Snapshot struct {
	view
	position uint64
}

// view is an open read transaction on a database.
type view struct {
	dir     string  // of the store
	frozen  *frozen // counts it
	be      backend.Snapshot
	guarded *sums.Guarded // of which it is a view
	size    int64
	once    *sync.Once
}

// Snapshot returns a view of the state as it is now, for another member. It must be closed.
func (s *Store) Snapshot() (*Snapshot, error) {
	position := s.positions.applied.Load()
	v, err := s.view(atOnce)
	if err != nil {
		return nil, err
	}
	return &Snapshot{v, position}, nil
}

// view opens a view. While the database is defragmented, it waits until ctx is done.
func (s *Store) view(ctx context.Context) (v view, err error) {
	return s.viewAfter(ctx, func(*database) {})
}

// pinnedView is view with the large values that it refers to, which can be fetched until the caller unpins them.
func (s *Store) pinnedView(ctx context.Context) (v view, r *refs, err error) {
	v, err = s.viewAfter(ctx, func(db *database) {
		r = db.refs
		r.pin(1)
	})
	if err != nil && r != nil {
		r.pin(-1)
	}
	return v, r, err
}

// viewAfter opens a view after a step on its database.
func (s *Store) viewAfter(ctx context.Context, step func(*database)) (v view, err error) {
	if err := s.damage.usable(); err != nil {
		return v, err
	}
	if err := s.frozen.enter(ctx); err != nil {
		return v, err
	}
	err = s.using(func(db *database) error {
		step(db)
		v = view{dir: s.opts.Dir, frozen: &s.frozen, be: db.be.Snapshot(), guarded: db.guarded, once: new(sync.Once)}
		v.size = v.be.Size()
		return nil
	})
	if err != nil {
		s.frozen.leave()
	}
	return v, err
}

// Close frees the view. The database file cannot shrink before.
func (v *view) Close() (err error) {
	v.once.Do(func() {
		err = v.be.Close()
		v.frozen.leave()
	})
	return err
}

// Position returns the position of the last command that the snapshot includes.
func (s *Snapshot) Position() uint64 { return s.position }

// WriteTo writes the view; Apply may continue meanwhile. It stops with ctx's error when ctx is
// done.
func (s *Snapshot) WriteTo(ctx context.Context, w io.Writer) error {
	return s.write(ctx, w, s.header())
}

func (s *Snapshot) header() []byte {
	header := []byte(snapshotMagic)
	header = binary.BigEndian.AppendUint64(header, s.position)
	return binary.BigEndian.AppendUint64(header, uint64(s.size))
}

// write writes a header, the database and the digest of both. A database that is damaged is
// not written.
func (v *view) write(ctx context.Context, w io.Writer, header []byte) error {
	if err := v.inspect(); err != nil {
		return err
	}
	return v.stream(ctx, w, header)
}

func (v *view) stream(ctx context.Context, w io.Writer, header []byte) error {
	digest := sha256.New()
	out := &contextWriter{ctx, io.MultiWriter(w, digest)}
	if _, err := out.Write(header); err != nil {
		return err
	}
	n, err := v.be.WriteTo(out)
	if err != nil {
		return err
	}
	if n != v.size {
		return fmt.Errorf("store: snapshot of %d bytes, expected %d", n, v.size)
	}
	_, err = w.Write(digest.Sum(nil))
	return err
}

// contextWriter stops writing when its context is done.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c *contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// errDefragmenting is the error of a snapshot while the file is rewritten. A retry is safe.
var errDefragmenting = errors.New("store: the database is being defragmented, no snapshot now")

// atOnce is the context of callers that do not wait for a defragmentation: they get errDefragmenting.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errDefragmenting)
	return ctx
}()

// frozen counts open views. A database with open views cannot be closed, and defragmenting
// closes it under all its locks: so it waits for them before taking any.
type frozen struct {
	mu    sync.Mutex
	open  int
	alone chan struct{} // not nil: no new view, until it is closed: defragmenting, or about to
	left  chan struct{} // holds a token when the last view was closed
}

func (f *frozen) init() { f.left = make(chan struct{}, 1) }

// enter counts a view that opens. During a defragmentation it waits until ctx is done.
func (f *frozen) enter(ctx context.Context) error {
	return f.unlessAlone(ctx, func() { f.open++ })
}

// unlessAlone calls do, with mu held, when no defragmentation has the database alone.
func (f *frozen) unlessAlone(ctx context.Context, do func()) error {
	for {
		f.mu.Lock()
		alone := f.alone
		if alone == nil {
			do()
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
		select {
		case <-alone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *frozen) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open--; f.open == 0 && f.alone != nil {
		f.left <- struct{}{}
	}
}

// exclude prevents new views and waits until the open ones are closed.
func (f *frozen) exclude(ctx context.Context) error {
	open := 0
	err := f.unlessAlone(ctx, func() { f.alone, open = make(chan struct{}), f.open })
	if err != nil || open == 0 {
		return err
	}
	select {
	case <-f.left:
		return nil
	case <-ctx.Done():
		f.admit()
		return fmt.Errorf("store: the database is not exchanged, because snapshots of it are open: %w",
			context.Cause(ctx))
	}
}

func (f *frozen) admit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.alone)
	f.alone = nil
	select { // a token that came too late
	case <-f.left:
	default:
	}
}

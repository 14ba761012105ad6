package store

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid/internal/store/sums"
)

// scrubPiece is how many bytes of the database are read in one go, from one view. A view prevents the reuse of pages,
// so it is not held open between pieces.
const scrubPiece = 4 << 20

// Scrub reads the whole database again and again, at this many bytes a second, until ctx or the store ends. So damage
// is found before it is read. Damage has what it found.
func (s *Store) Scrub(ctx context.Context, bytesPerSecond int64) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	next, left := mvcc.Revision{}, int64(scrubAtLeast)
	for {
		read, at, err := s.scrubPiece(next, scrubPiece)
		next = at
		left -= read
		if errors.As(err, new(*sums.ReadError)) {
			s.lg.Warn("the database cannot be checked, the next round tries again", zap.Error(err))
		}
		if err != nil || next == (mvcc.Revision{}) { // the end of a round
			next, read, left = mvcc.Revision{}, max(read, left), scrubAtLeast
		}
		timer.Reset(time.Duration(float64(read) / float64(bytesPerSecond) * float64(time.Second)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		case <-s.stop:
			return
		case <-s.latch.failed:
			return
		}
	}
}

// scrubAtLeast is the least number of bytes that a round counts for. Taking a view makes the
// database commit, which must not happen too often.
const scrubAtLeast = 64 << 20

// scrubPiece reads the revisions from one on, about limit bytes of them, and with the first piece everything else. It
// returns where to continue; zero: at the beginning.
func (s *Store) scrubPiece(from mvcc.Revision, limit int64) (read int64, next mvcc.Revision, err error) {
	v, err := s.view(atOnce)
	if err != nil {
		return 0, next, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	p, err := v.guarded.PagesOf(v.be)
	if err == nil {
		next, err = v.guarded.Scrub(p, from, limit)
		read = p.Read
	}
	if err != nil {
		return read, mvcc.Revision{}, v.guarded.Judge(s.opts.Dir, err)
	}
	return read, next, nil
}

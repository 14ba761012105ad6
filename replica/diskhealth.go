package replica

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// scrubAtLeast is the least number of bytes for whose time a round of scrubbing lasts, even if fewer
// bytes are on the disk.
const scrubAtLeast = 64 << 20

// DiskStats is what a member knows of damage to its log and its snapshots. BodyStats has the same of
// bodies.
type DiskStats struct {
	// Rounds is how often everything on disk was read in this life. Scrubbed is how many bytes of
	// the log and of snapshots were read.
	Rounds, Scrubbed uint64
	// Damaged counts the places that were found damaged. Mended counts those that are not damaged
	// any more or that hold nothing needed any more.
	Damaged, Mended uint64
	// Failing says what is damaged and still needed. It is nil if no such damage is known.
	Failing error
}

// diskHealth is what this member knows of damage to its log and its snapshots.
type diskHealth struct {
	mu      sync.Mutex
	book    member.DamageBook
	stats   DiskStats
	failing error // the last damage that was found; nil once none is left
}

func (d *diskHealth) note(file string, offset int64, needed bool) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.book.Note(file, offset, needed)
}

func (d *diskHealth) noteLog(found *wal.Damage) member.LogRemedy {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.book.NoteLog(found)
}

func (d *diskHealth) read(n int64) {
	d.mu.Lock()
	d.stats.Scrubbed += uint64(n)
	d.mu.Unlock()
}

func (d *diskHealth) fail(err error) {
	d.mu.Lock()
	d.failing = err
	d.mu.Unlock()
}

func (d *diskHealth) endRound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Rounds++
	if d.book.EndRound() == 0 {
		d.failing = nil
	}
}

// Stats returns the counts up to now.
func (d *diskHealth) Stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Damaged, s.Mended, s.Failing = d.book.Found, d.book.Mended, d.failing
	return s
}

// scrub reads the log, the snapshots and the bodies again and again, slowly.
func (r *Replica) scrub(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	left := int64(0)
	spend := func(bytes int64) bool {
		left -= bytes
		timer.Reset(time.Duration(float64(bytes) / float64(r.opt.ScrubBytesPerSecond) * float64(time.Second)))
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	log := r.wal.NewScrubber()
	for {
		left = scrubAtLeast
		if !r.scrubLog(log, spend) || !r.scrubSnapshots(spend) || !r.bodies.scrub(spend) {
			return
		}
		r.disk.endRound()
		if !spend(max(left, 0)) {
			return
		}
	}
}

func (r *Replica) scrubLog(s *wal.Scrubber, spend func(int64) bool) bool {
	for {
		n, damage := s.Next()
		r.disk.read(n)
		if damage != nil {
			r.mendLog(damage)
		}
		if n == 0 {
			return true
		}
		if !spend(n) {
			return false
		}
	}
}

// mendLog does what it can about damage in the log. For damaged entries a snapshot is taken once they
// are applied, and the log is compacted up to it. A damaged hard state is written again.
func (r *Replica) mendLog(d *wal.Damage) {
	remedy := r.disk.noteLog(d)
	if remedy.News {
		r.log.Error("the log is damaged on disk", "err", d.Where, "needed", len(d.Lost) > 0)
	}
	for _, id := range remedy.Rewrite {
		r.writer.Rewrite(uint32(id), func(err error) {
			if err != nil && !errors.Is(err, wal.ErrClosed) {
				r.fail(err)
			}
		})
	}
	for _, h := range remedy.Harmed {
		r.harm(h.Instance, &member.LoadError{Instance: h.Instance, Index: h.Index, Err: d.Where})
	}
	if len(d.Lost) > 0 {
		r.disk.fail(d.Where)
	}
}

// harm notes that entries up to an index are damaged in the log. A snapshot is to stand for them as
// soon as they are applied.
func (r *Replica) harm(instance protocol.InstanceID, err *member.LoadError) {
	l := r.find(instance)
	if l == nil {
		return // the instance is retired; its log is dropped anyway
	}
	for had := l.harmed.Load(); had < uint64(err.Index) && !l.harmed.CompareAndSwap(had, uint64(err.Index)); had = l.harmed.Load() {
	}
	r.disk.fail(err)
	if cursor, _ := r.apply.at(); cursor.Point(instance).Index >= err.Index {
		r.apply.push(member.ApplyItem{Due: true})
	}
}

// scrubSnapshots reads all snapshot files.
func (r *Replica) scrubSnapshots(spend func(int64) bool) bool {
	all, err := r.snaps.Positions()
	if err != nil {
		r.log.Warn("snapshots cannot be listed", "err", err)
		return true
	}
	for _, p := range all {
		err := r.snaps.Whole(p, func(n int64) bool {
			r.disk.read(n)
			return spend(n)
		})
		switch {
		case errors.Is(err, member.ErrStopped):
			return false
		case err != nil && !errors.Is(err, os.ErrNotExist):
			r.mendSnapshot(p, err)
		}
	}
	return true
}

// mendSnapshot does what it can about a damaged snapshot file.
func (r *Replica) mendSnapshot(p protocol.Position, err error) {
	all, lerr := r.snaps.Positions()
	if lerr != nil {
		r.log.Warn("snapshots cannot be listed", "err", lerr)
		return
	}
	retake, remove := member.SnapshotRemedy(p, all, err)
	if r.disk.note(r.snaps.Path(p), 0, !remove) {
		r.log.Error("a snapshot is damaged on disk", "err", err, "position", p, "replaced", retake)
	}
	if remove {
		if err := r.snaps.Remove(p); err != nil {
			r.log.Warn("a damaged snapshot cannot be removed", "err", err)
		}
	}
	if retake {
		r.disk.fail(err)
		r.apply.push(member.ApplyItem{Due: true})
	}
}

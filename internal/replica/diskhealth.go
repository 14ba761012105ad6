package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// diskHealth guards a damage.DiskHealth.
type diskHealth struct {
	mu     sync.Mutex
	health damage.DiskHealth
}

// Health calls use while no one else uses the DiskHealth.
func (d *diskHealth) Health(use func(*damage.DiskHealth)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	use(&d.health)
}

// Stats returns the counts up to now.
func (d *diskHealth) Stats() (s damage.DiskStats) {
	d.Health(func(h *damage.DiskHealth) { s = h.Stats() })
	return s
}

// scrub runs a damage.Scrub, slowly.
func (r *Replica) scrub(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	s := damage.NewScrub(scrubWorld{&r.disk, r},
		damage.ScrubFiles{Log: r.dir.Log.NewScrubber(), Snapshots: r.dir.Snapshots, Bodies: r.bodies.BodyAccess})
	for {
		select {
		case <-timer.C:
			timer.Reset(time.Duration(float64(s.Step()) / float64(r.opt.ScrubBytesPerSecond) * float64(time.Second)))
		case <-ctx.Done():
			if err := s.Close(); err != nil {
				r.log.Warn("a snapshot cannot be closed", "err", err)
			}
			return
		}
	}
}

// scrubWorld gives damage.Scrub what it needs of the member.
type scrubWorld struct {
	*diskHealth
	r *Replica
}

// Harm implements damage.ScrubWorld, as the methods below do.
func (w scrubWorld) Harm(err *member.LoadError) { w.r.harm(err) }

func (w scrubWorld) Rewrite(instance protocol.InstanceID) {
	w.r.writer.Rewrite(uint32(instance), func(err error) {
		if err != nil && !errors.Is(err, wal.ErrClosed) {
			w.r.fail(err)
		}
	})
}

func (w scrubWorld) WantSnapshot() { w.r.apply.push(apply.ApplyItem{Due: true}) }

func (w scrubWorld) Found(err error, needed bool) {
	w.r.log.Error("something on disk is damaged", "event", "damage", "err", err, "needed", needed)
}

func (w scrubWorld) Trouble(err error) {
	w.r.log.Warn("something on disk cannot be read, listed or removed", "err", err)
}

// harm notes that an entry cannot be read from the log.
func (r *Replica) harm(err *member.LoadError) {
	at, _ := r.apply.at()
	due := false
	r.disk.Health(func(d *damage.DiskHealth) { due = d.Harm(err, &at) })
	if due {
		r.apply.push(apply.ApplyItem{Due: true})
	}
}

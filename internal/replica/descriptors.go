package replica

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/wal"
)

// descriptorPause is how long a step waits before it tries again to get a descriptor.
const descriptorPause = 50 * time.Millisecond

// withDescriptors repeats a step, which is named, as long as the process has no descriptor for another
// file: that must not stop a member. What waits for the step waits meanwhile. If the member stops, it
// returns member.ErrStopped.
func (r *Replica) withDescriptors(name string, step func() error) error {
	for waited := false; ; waited = true {
		err := step()
		if !sys.NoDescriptor(err) {
			return err
		}
		if !waited {
			r.metrics.starved.Add(1)
			r.log.Warn("the process has no descriptor for another file, "+name+" waits", "err", err)
		}
		select {
		case <-time.After(descriptorPause):
		case <-r.stop:
			return member.ErrStopped
		}
	}
}

// logWaits logs that the log waits for its disk, or for a descriptor; with nil that it continues.
func (r *Replica) logWaits(full *wal.FullError) {
	if full != nil {
		r.log.Warn("the log waits", "event", "log-waits", "err", full)
		return
	}
	r.log.Info("the log continues", "event", "log-continues")
}

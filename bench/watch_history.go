package bench

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// catchUp is the phase in which watches start at old revisions under a load of puts. Half of the watches start before
// the first half of the history is compacted, the others after it.
func (r *watchRun) catchUp(ctx context.Context) error {
	first, last, err := r.putHistory(ctx)
	if err != nil {
		return err
	}
	middle := first + (last-first)/2
	type answer struct {
		p   *WatchPhase
		err error
	}
	loadCtx, stop := context.WithCancel(ctx)
	answers := make(chan answer, 1)
	go func() {
		p, err := r.puts(loadCtx, PhaseCatchUp)
		answers <- answer{p, err}
	}()
	w := &watches{r: r}
	defer w.close()
	began := time.Now()
	err = w.openOld(ctx, first, middle, last)
	if err != nil {
		stop()
	}
	a := <-answers
	stop()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", PhaseCatchUp, err)
	case a.err != nil:
		return a.err
	}
	if err := w.settle(ctx, a.p); err != nil {
		return err
	}
	for _, log := range w.logs {
		log.mu.Lock()
		if !log.ended && !log.caughtUp.IsZero() {
			a.p.CaughtUpS = max(a.p.CaughtUpS, log.caughtUp.Sub(began).Seconds())
		}
		log.mu.Unlock()
	}
	return nil
}

// putHistory makes the puts before the watches, and returns the first and the last revision of them.
func (r *watchRun) putHistory(ctx context.Context) (first, last int64, err error) {
	before, err := currentRevision(ctx, r.kv[0])
	if err != nil {
		return 0, 0, err
	}
	_, err = r.putOn(ctx, func(c *KVConfig) { c.Total, c.Duration, c.Warmup = int64(r.History), 0, 0 })
	if err != nil {
		return 0, 0, fmt.Errorf("history: %w", err)
	}
	last, err = currentRevision(ctx, r.kv[0])
	return before + 1, last, err
}

// openOld opens half of the watches at revisions before the middle, compacts the history before the middle, and opens
// the others at revisions from the first to the last. Those of the others that start before the middle must be
// cancelled.
func (w *watches) openOld(ctx context.Context, first, middle, last int64) error {
	spread := func(n int, from, to int64) (logs []*watchLog) {
		for i := range n {
			logs = append(logs, &watchLog{from: from + int64(i)*(to-from)/int64(n), target: last, compacted: middle})
		}
		return logs
	}
	early := spread((w.r.Watchers+1)/2, first, middle)
	for _, log := range early {
		log.cancel = maybeCancelled
	}
	if err := w.open(ctx, early); err != nil {
		return err
	}
	// Some are behind the compaction, and others are not.
	_, err := until(ctx, &w.r.events, early[len(early)/2:], func(log *watchLog) bool {
		revision, ended := log.last()
		return ended || revision >= middle
	})
	if err != nil {
		return err
	}
	if err := w.r.compact(ctx, middle); err != nil {
		return err
	}
	late := spread(w.r.Watchers/2, first, last)
	for _, log := range late {
		if log.from < middle {
			log.cancel = alwaysCancelled
		}
	}
	return w.open(ctx, late)
}

// compact compacts the history before a revision, and waits until all servers have done it.
func (r *watchRun) compact(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := r.kv[0].Compact(ctx, &etcdserverpb.CompactionRequest{Revision: revision}); err != nil {
		return fmt.Errorf("compaction at revision %d: %w", revision, err)
	}
	for _, kv := range r.kv {
		// A linearizable read waits until the server has applied the compaction.
		if _, err := currentRevision(ctx, kv); err != nil {
			return err
		}
	}
	return nil
}

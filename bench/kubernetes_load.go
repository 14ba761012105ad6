package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/bench/workload"
)

// start begins all operations, which end at the end of the measured time.
func (r *kubernetesRun) start(ctx context.Context, begin int64, o *clusterObjects) {
	rate := func(every time.Duration, n int) float64 { return r.Rate * float64(n) / every.Seconds() }
	update := func(name string, every time.Duration, objects []*object) {
		k := r.kind(name, rate(every, len(objects)))
		r.open(ctx, begin, k.rate, func(n int, due int64) {
			r.perform(k, due, n, func() error { return r.update(ctx, objects[n%len(objects)]) })
		})
	}
	update("lease update", leaseEvery, o.leases)
	update("node status", statusEvery, o.statuses)
	r.startPods(ctx, begin)
	events := r.kind("event", r.Rate*r.Churn*eventsOfAPod)
	r.open(ctx, begin, events.rate, func(n int, due int64) {
		r.perform(events, due, n, func() error { return r.recordEvent(ctx, n) })
	})
	lists, pages := r.kind("list", rate(r.ListEvery, 1)), r.kind("list page", 0)
	r.open(ctx, begin, lists.rate, func(n int, due int64) {
		r.perform(lists, due, n, func() error { return r.list(ctx, resources[n%len(resources)], pages) })
	})
	compact := r.kind("compaction", rate(compactEvery, 1))
	var revision atomic.Int64
	r.open(ctx, begin, compact.rate, func(n int, due int64) {
		r.perform(compact, due, n, func() error {
			now, err := r.compact(ctx, revision.Load())
			revision.Store(now)
			return err
		})
	})
}

// startPods begins the churn of pods. Each is created, updated twice and deleted, at fixed times.
func (r *kubernetesRun) startPods(ctx context.Context, begin int64) {
	churn := r.Rate * r.Churn
	creations, updates, deletions := r.kind("pod create", churn), r.kind("pod status", 2*churn),
		r.kind("pod delete", churn)
	step := int64(min(time.Second, r.Warmup/4)) // deletions begin before the measured time
	r.open(ctx, begin, churn, func(n int, due int64) {
		pod := newObject(fmt.Sprintf("%schurn/pod-%08d", podPrefix, n), podBytes)
		for i, o := range []*operations{creations, updates, updates, deletions} {
			operate := func() error { return r.update(ctx, pod) }
			if o == deletions {
				operate = func() error { return r.remove(ctx, pod) }
			}
			at := due + int64(i)*step
			if !r.sleep(ctx, at) {
				return
			}
			r.perform(o, at, n, operate)
		}
	})
}

// sleep waits until a time, and reports whether it is before the end of the measured time.
func (r *kubernetesRun) sleep(ctx context.Context, at int64) bool {
	if at >= r.to.Load() {
		return false
	}
	wait := time.Duration(at - r.now())
	if wait <= 0 {
		return ctx.Err() == nil && r.now() < r.to.Load()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// open begins an open loop: operations are due at a rate, whether or not the servers keep up.
func (r *kubernetesRun) open(ctx context.Context, begin int64, rate float64, operate func(n int, due int64)) {
	pace, slots := workload.NewPace(rate), make(chan struct{}, maxUnderWay)
	r.busy.Go(func() {
		for n := 0; ; n++ {
			due := begin + int64(pace.Next())
			if !r.sleep(ctx, due) {
				return
			}
			slots <- struct{}{}
			r.busy.Go(func() {
				defer func() { <-slots }()
				operate(n, due)
			})
		}
	})
}

package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// resourceWatch is the watch of all objects of a resource, with their previous values.
type resourceWatch struct {
	resource string
	stream   *watchStream
	log      *watchLog
	delay    shardedHistogram // of the events in the measured time
	// incomplete counts updates and deletions without the previous value.
	incomplete atomic.Int64
}

// openWatches opens a watch of each resource, on a connection of its own.
func (r *kubernetesRun) openWatches(ctx context.Context) error {
	now, err := currentRevision(ctx, r.target().kv)
	if err != nil {
		return err
	}
	for i, prefix := range resources {
		w := &resourceWatch{resource: prefix, log: &watchLog{prefix: prefix, from: now + 1}}
		endpoint := r.servers.Endpoints[i%len(r.servers.Endpoints)]
		if w.stream, err = openWatchStream(ctx, endpoint, &r.events); err != nil {
			return err
		}
		r.watched = append(r.watched, w)
		w.stream.prevKV, w.stream.seen = true, func(e *mvccpb.Event) { r.seen(w, e) }
		w.stream.read()
		if err := w.stream.watch(w.log); err != nil {
			return err
		}
	}
	ok, err := until(ctx, &r.events, r.logs(), (*watchLog).isCreated)
	if err == nil && !ok {
		err = fmt.Errorf("the servers did not confirm the watches within %v", settleTimeout)
	}
	return err
}

func (r *kubernetesRun) closeWatches() {
	for _, w := range r.watched {
		w.stream.close()
	}
}

func (r *kubernetesRun) logs() (logs []*watchLog) {
	for _, w := range r.watched {
		logs = append(logs, w.log)
	}
	return logs
}

// seen takes an event. Its delay counts from when the request was sent.
func (r *kubernetesRun) seen(w *resourceWatch, e *mvccpb.Event) {
	deleted := e.Type == mvccpb.Event_DELETE
	if (deleted || e.Kv.CreateRevision != e.Kv.ModRevision) && e.PrevKv == nil {
		w.incomplete.Add(1)
	}
	if now := r.now(); !deleted && len(e.Kv.Value) >= 8 && now >= r.from.Load() && now < r.to.Load() {
		w.delay.record(0, now-int64(binary.LittleEndian.Uint64(e.Kv.Value)))
	}
}

package bench

import (
	"context"
	"sync"

	"github.com/braidlog/braid/bench/workload"
)

// KVLoad is a load without a result. It continues until it is stopped, even while no server answers: a request that
// fails is counted, and its client uses the next connection. Its methods may be called concurrently.
type KVLoad struct {
	r      *kvRun
	cancel context.CancelFunc // ends the requests in progress
	stop   func()             // ends the clients after their requests in progress
	done   chan struct{}
}

// KVCounts are the numbers of requests of a load so far.
type KVCounts struct{ Writes, Reads, Failed int64 }

// StartKV starts a load on endpoints that need not answer yet. Each request has the values of ctx, such as a user's
// token in its gRPC metadata, but does not end with ctx. Total, Duration, Warmup, Load and Check of c do not apply. The
// error is that of an invalid c; then no load was started.
func StartKV(ctx context.Context, c KVConfig) (*KVLoad, error) {
	c.Total, c.Duration, c.Warmup, c.Load, c.Check = 0, 0, 0, false, false
	if err := c.validateLoad(); err != nil {
		return nil, err
	}
	r, err := newKVRun(c)
	if err != nil {
		return nil, err
	}
	if err := r.open(c.Endpoints); err != nil {
		r.hangUp()
		return nil, err
	}
	r.loadFrom = r.now()
	r.from.Store(r.loadFrom)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &KVLoad{r: r, cancel: cancel, stop: sync.OnceFunc(func() { close(r.stop) }), done: make(chan struct{})}
	for _, client := range r.newClients() {
		r.wg.Go(func() { client.run(ctx) })
	}
	go l.end()
	return l, nil
}

// end waits for the end of the load, and stops it after a refusal.
func (l *KVLoad) end() {
	select {
	case <-l.r.stop:
	case <-l.r.refusal:
		l.stop()
	}
	l.r.wg.Wait()
	close(l.done)
}

// Counts returns the number of requests so far.
func (l *KVLoad) Counts() KVCounts {
	c := KVCounts{Failed: l.r.failed.Load()}
	for kind := range workload.Kind(workload.Kinds) {
		if n := l.r.took[kind].count(); kind.Writes() {
			c.Writes += n
		} else {
			c.Reads += n
		}
	}
	return c
}

// Done is closed after the last request has ended: after Stop, or after a request was refused permanently.
func (l *KVLoad) Done() <-chan struct{} { return l.done }

// Err returns the *[RefusedError] that has ended the load, else the error of the last request that failed, nil if none
// has failed.
func (l *KVLoad) Err() error {
	if refused := l.r.refused.Load(); refused != nil {
		return refused
	}
	if e := l.r.lastErr.Load(); e != nil {
		return *e
	}
	return nil
}

// Stop ends the load, removes its keys if RemoveKeys is set, and closes the connections. It is called once, also after
// Done. It waits for the requests in progress, which may still take effect, for 10 s at most, and for the removal, for
// 20 s at most; when ctx ends, for neither. The error is that of the removal.
func (l *KVLoad) Stop(ctx context.Context) error {
	l.stop()
	defer context.AfterFunc(ctx, l.cancel)()
	defer l.cancel()
	<-l.done
	defer l.r.hangUp()
	if !l.r.RemoveKeys {
		return nil
	}
	return l.r.removeKeys(ctx)
}

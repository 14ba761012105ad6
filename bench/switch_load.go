package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/check"
)

// switchLoad are the clients of a cluster that is switched. After an error a client makes its next request at the next
// member.
type switchLoad struct {
	run    *kvRun
	config *SwitchConfig
	stop   func()       // ends the clients
	gate   sync.RWMutex // read-locked by requests

	mu     sync.Mutex
	puts   []answeredPut // in the order of their ends
	failed []failedRequest
}

// answeredPut is a put or a transaction, with times in ns since the origin of the run.
type answeredPut struct{ call, end int64 }

type failedRequest struct {
	end int64
	err error
}

// switchWindow is a time without a switch.
type switchWindow struct {
	perSecond float64       // puts
	pause     time.Duration // the longest time without one
}

// startSwitchLoad begins to load the endpoints.
func startSwitchLoad(ctx context.Context, c KVConfig, config *SwitchConfig) (*switchLoad, error) {
	run, err := newKVRun(c)
	if err != nil {
		return nil, err
	}
	if err := run.dial(ctx, c.Endpoints); err != nil {
		run.hangUp()
		return nil, err
	}
	l := &switchLoad{run: run, config: config}
	run.loadFrom = run.now()
	for _, c := range run.newClients() {
		run.wg.Go(func() { l.client(context.WithoutCancel(ctx), c) })
	}
	l.stop = sync.OnceFunc(func() {
		close(run.stop)
		run.wg.Wait()
	})
	return l, nil
}

func (l *switchLoad) now() int64 { return l.run.now() }

// client makes one request after the other until the run stops.
func (l *switchLoad) client(ctx context.Context, c *kvClient) {
	defer c.begin(ctx)()
	random := rand.New(rand.NewPCG(l.config.Seed, uint64(c.id)))
	for l.request(c, random) {
	}
}

func (l *switchLoad) request(c *kvClient, random *rand.Rand) (ok bool) {
	l.gate.RLock()
	defer l.gate.RUnlock()
	start, ok := c.await()
	if !ok {
		return false
	}
	op := c.gen.Next(time.Duration(start - l.run.loadFrom))
	if op.Size = l.config.ValSize; l.config.LargeShare > 0 && random.Float64() < l.config.LargeShare {
		op.Size = l.config.LargeSize
	}
	start = l.now()
	err := c.perform(op)
	l.note(op.Kind, start, err)
	c.note(op.Kind, start, err)
	return true
}

// note records how a request ended.
func (l *switchLoad) note(kind workload.Kind, start int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch end := l.now(); {
	case err != nil:
		l.failed = append(l.failed, failedRequest{end, err})
	case kind.Writes():
		l.puts = append(l.puts, answeredPut{start, end})
	}
}

// pause keeps the clients from requests until resume is called.
func (l *switchLoad) pause() (resume func()) {
	l.gate.Lock()
	return l.gate.Unlock
}

// measure waits for settle, and measures the cluster then.
func (l *switchLoad) measure(ctx context.Context, settle, window time.Duration) (w switchWindow, err error) {
	for _, d := range []time.Duration{settle, window} {
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return w, ctx.Err()
		}
	}
	to := l.now()
	from := to - int64(window)
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for i := len(l.puts) - 1; i >= 0 && l.puts[i].end >= from; i-- {
		n++
	}
	return switchWindow{perSecond: float64(n) / window.Seconds(), pause: longestPause(l.puts, from, to)}, nil
}

// around completes the figures of a switch from the requests between two times.
func (l *switchLoad) around(p *SwitchPair, from, to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.PauseMS = ms(longestPause(l.puts, from, to))
	for i := len(l.puts) - 1; i >= 0 && l.puts[i].end >= from; i-- {
		if put := l.puts[i]; put.call <= to {
			p.SlowestPutMS = max(p.SlowestPutMS, ms(time.Duration(put.end-put.call)))
		}
	}
	for i := len(l.failed) - 1; i >= 0 && l.failed[i].end >= from; i-- {
		if f := l.failed[i]; retried(f.err) {
			p.Retried++
		} else {
			p.Errors, p.ErrorSample = p.Errors+1, f.err.Error()
		}
	}
}

// longestPause returns the longest time without an answered put that is at least in part between two times. The last
// time must have passed.
func longestPause(puts []answeredPut, from, to int64) time.Duration {
	i, _ := slices.BinarySearchFunc(puts, from, func(p answeredPut, t int64) int {
		return int(min(1, max(-1, p.end-t)))
	})
	last, longest := from, int64(0)
	if i > 0 {
		last = puts[i-1].end
	}
	for ; i < len(puts); i++ {
		longest = max(longest, puts[i].end-last)
		if last = puts[i].end; last > to {
			return time.Duration(longest)
		}
	}
	return time.Duration(max(longest, to-last))
}

// retried reports whether clients try again after an error: no leader, or no answer.
func retried(err error) bool {
	switch grpcstatus.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	}
	return errors.Is(err, errLate)
}

// refusal returns the error of requests that the servers refuse permanently.
func (l *switchLoad) refusal() error {
	if e := l.run.refused.Load(); e != nil {
		return e
	}
	return nil
}

// end ends the clients and their connections.
func (l *switchLoad) end() {
	l.stop()
	l.run.hangUp()
}

// finish ends the clients, reads every key at each member, and checks the history: it is linearizable, and each write
// that was answered took effect once.
func (l *switchLoad) finish() (*Verdict, []string) {
	defer l.end()
	l.stop()
	var violations []string
	for member := range l.config.Nodes {
		versions, err := l.readAll(member)
		if err != nil {
			violations = append(violations, fmt.Sprintf("member %d cannot be read at the end: %v", member+1, err))
			continue
		}
		violations = append(violations, countWrites(l.run.history.r.History(), versions)...)
	}
	v := l.run.history.judge(l.run.CheckLimit)
	if v.Verdict != Linearizable {
		violations = append(violations, v.Verdict+": "+v.Detail)
	}
	return v, violations
}

// readAll reads all keys at a member, and returns how often each was written.
func (l *switchLoad) readAll(member int) (versions map[string]int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	kv := l.run.targets[member].kv
	versions = map[string]int64{}
	q := etcdserverpb.RangeRequest{Key: []byte(l.run.KeyPrefix), RangeEnd: l.run.keysEnd(), Limit: 16}
	for {
		call := l.now()
		r, err := kv.Range(ctx, &q)
		switch {
		case err != nil && (ctx.Err() != nil || !retried(err)):
			return nil, err
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		for _, kv := range r.Kvs {
			l.run.history.saw(l.run.Clients+member, call, kvSeen{kv.Key, kv.Value, true, kv.ModRevision})
			versions[string(kv.Key)] = kv.Version
			q.Key = append(kv.Key, 0)
		}
		if !r.More {
			return versions, nil
		}
	}
}

// countWrites compares how often each key was written with the writes that were answered. Those of unknown outcome may
// have taken effect once.
func countWrites(history []check.Operation, versions map[string]int64) (violations []string) {
	type count struct{ answered, unknown int64 }
	writes := map[string]count{}
	for i := range history {
		o := &history[i]
		n := writes[o.Key]
		switch {
		case o.Kind == check.Get || o.Outcome == check.Failed:
			continue
		case o.Outcome == check.OK:
			n.answered++
		default:
			n.unknown++
		}
		writes[o.Key] = n
	}
	for key, n := range writes {
		if v := versions[key]; v < n.answered || v > n.answered+n.unknown {
			violations = append(violations,
				fmt.Sprintf("key %s was written %d times: %d writes were answered, and %d have "+
					"an unknown outcome", key, v, n.answered, n.unknown))
		}
	}
	slices.Sort(violations)
	return violations
}

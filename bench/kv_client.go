package bench

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/check"
)

// kvClient is one client: it makes one request at a time.
type kvClient struct {
	r      *kvRun
	id     int
	store  kvStore
	target int // the connection in use
	gen    *workload.Generator
	key    []byte
	value  []byte // as long as the longest
	seq    uint64 // of the next value
	p      requestLimit
	timer  *time.Timer
}

func (r *kvRun) newClients() []*kvClient {
	shared := make([]byte, r.Workload.Values.Max)
	random := rand.New(rand.NewPCG(r.Workload.Seed, 0))
	for i := range shared {
		shared[i] = byte(random.Uint32())
	}
	var clients []*kvClient
	for i := range r.Clients {
		c := &kvClient{r: r, id: i, gen: r.workload.Generator(i), value: shared}
		if r.Check {
			c.value = bytes.Clone(shared) // every value is unique
		}
		c.key = append([]byte(r.KeyPrefix), make([]byte, r.KeySize-len(r.KeyPrefix))...)
		if r.API == MapAPI {
			c.store = &mapStore{stale: r.Serializable}
		} else {
			c.store = newEtcdStore(r.Serializable, r.keysEnd())
		}
		c.target = i % len(r.targets)
		c.store.use(r.targets[c.target])
		clients = append(clients, c)
	}
	return clients
}

// keysEnd returns the first key after all keys of the run.
func (r *kvRun) keysEnd() []byte { return append([]byte(r.KeyPrefix), '9'+1) }

// begin prepares the client; the returned function ends it.
func (c *kvClient) begin(ctx context.Context) (end func()) {
	c.p = requestLimit{parent: ctx, limit: requestTimeout}
	c.timer = time.NewTimer(math.MaxInt64)
	return func() {
		c.p.end()
		c.timer.Stop()
	}
}

// start makes requests until the run stops.
func (c *kvClient) start(ctx context.Context) {
	if c.r.Batch > 0 {
		c.runBatches(ctx)
		return
	}
	c.run(ctx)
}

// run makes one request after the other until the run stops.
func (c *kvClient) run(ctx context.Context) {
	r := c.r
	defer c.begin(ctx)()
	for {
		start, ok := c.await()
		if !ok || r.Total > 0 && r.issued.Add(1) > r.Total {
			return
		}
		op := c.gen.Next(time.Duration(r.now() - r.loadFrom))
		c.note(op.Kind, start, c.perform(op))
		if op.Kind == workload.Insert {
			r.workload.Inserted(op.Key)
		}
	}
}

// await waits until the next request is due and returns the time from which its latency counts. ok is false when the
// run stops.
func (c *kvClient) await() (start int64, ok bool) {
	r := c.r
	switch {
	case r.pace != nil:
		start = r.loadFrom + int64(r.pace.Next())
		return start, c.sleep(start - r.now())
	case r.throttle != nil:
		ok = c.sleep(int64(r.throttle.Begin(time.Duration(r.now() - r.loadFrom))))
		return r.now(), ok
	}
	return r.now(), c.sleep(0)
}

// sleep waits some ns and reports whether the run continues.
func (c *kvClient) sleep(ns int64) bool {
	if ns <= 0 {
		select {
		case <-c.r.stop:
			return false
		default:
			return true
		}
	}
	c.timer.Reset(time.Duration(ns))
	select {
	case <-c.r.stop:
		return false
	case <-c.timer.C:
		return true
	}
}

// loadKeys puts every key once.
func (r *kvRun) loadKeys(ctx context.Context, clients []*kvClient) error {
	finished := make(chan struct{})
	for _, c := range clients {
		r.wg.Go(func() { c.load(context.WithoutCancel(ctx)) })
	}
	go func() { r.wg.Wait(); close(finished) }()
	err := r.wait(ctx, math.MaxInt64, "loading", finished)
	if err != nil {
		close(r.stop)
		<-finished
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted before anything was measured")
		}
	}
	return err
}

// load puts this client's share of the keys, each until it succeeds.
func (c *kvClient) load(ctx context.Context) {
	defer c.begin(ctx)()
	for key := c.id; key < c.r.Workload.KeySpace; key += c.r.Clients {
		op := c.gen.Load(uint64(key))
		for err := errors.New("not tried yet"); err != nil; {
			if !c.sleep(0) {
				return
			}
			err = c.perform(op)
			c.note(op.Kind, c.r.now(), err)
		}
	}
}

// perform makes the requests of one operation.
func (c *kvClient) perform(op workload.Op) error {
	formatKey(c.key[len(c.r.KeyPrefix):], op.Key)
	call := c.r.now()
	ctx := c.p.at(call)
	var err error
	switch op.Kind {
	case workload.Read:
		_, err = c.read(ctx, call)
	case workload.Scan:
		err = c.scan(ctx, call, op.Limit)
	case workload.ReadModifyWrite:
		err = c.readModifyWrite(ctx, call, op.Size)
	case workload.Delete:
		err = c.remove(ctx, call)
	case workload.Grant:
		err = c.store.grant(ctx)
	default:
		err = c.put(ctx, op.Size)
	}
	return c.p.explain(err)
}

// formatKey writes a number with leading zeros, so that keys sort as their numbers do.
func formatKey(digits []byte, n uint64) {
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = '0' + byte(n%10)
		n /= 10
	}
}

func (c *kvClient) read(ctx context.Context, call int64) (kvSeen, error) {
	seen, err := c.store.get(ctx, c.key)
	if err != nil {
		return seen, err
	}
	if !seen.found {
		c.r.notFound.Add(1)
	}
	c.r.history.saw(c.id, call, seen)
	return seen, nil
}

func (c *kvClient) scan(ctx context.Context, call int64, limit int) error {
	all, err := c.store.scan(ctx, c.key, limit)
	if err != nil {
		return err
	}
	for _, seen := range all {
		c.r.history.saw(c.id, call, seen)
	}
	return nil
}

func (c *kvClient) put(ctx context.Context, size int) error {
	value := c.next(size)
	id := c.r.history.begin(c.id, check.Put, c.key, value, "")
	revision, err := c.store.put(ctx, c.key, value)
	if err == nil {
		c.r.history.end(id, revision)
	} else {
		revision = 0
	}
	if c.r.Wrote != nil {
		c.r.Wrote(c.key, revision)
	}
	return err
}

// next returns a value of this size, in a checked run a unique one.
func (c *kvClient) next(size int) []byte {
	if c.r.Check {
		putIdentity(c.value, c.id, c.seq)
		c.seq++
	}
	return c.value[:size]
}

func (c *kvClient) remove(ctx context.Context, call int64) error {
	h := c.r.history
	id := h.begin(c.id, check.Delete, c.key, nil, "")
	removed, revision, err := c.store.remove(ctx, c.key)
	switch {
	case err != nil:
	case removed:
		h.end(id, revision)
	default:
		c.r.notFound.Add(1)
		h.cancel(id) // it was no write, but it saw that there is no key
		h.saw(c.id, call, kvSeen{key: c.key})
	}
	return err
}

// readModifyWrite reads a key and puts it unless it has changed since. If it has, that is a conflict, and nothing is
// written.
func (c *kvClient) readModifyWrite(ctx context.Context, call int64, size int) error {
	h := c.r.history
	seen, err := c.read(ctx, call)
	if err != nil {
		return err
	}
	value := c.next(size)
	kind, expect := check.Put, "" // a missing key is put, because there is nothing to swap
	if seen.found && h != nil {
		kind, expect = check.Swap, fingerprint(seen.value)
	}
	call = c.r.now()
	id := h.begin(c.id, kind, c.key, value, expect)
	done, now, err := c.store.swap(ctx, seen, value)
	switch {
	case err != nil:
	case done:
		h.end(id, now.revision)
	default:
		c.r.conflicts.Add(1)
		h.cancel(id)
		h.saw(c.id, call, now)
	}
	return err
}

// note counts the outcome of an operation. After an error the next connection is tried.
func (c *kvClient) note(kind workload.Kind, start int64, err error) { c.noteAll(kind, 1, start, err) }

// noteAll counts the outcome of n operations that have one answer: n operations or n errors, and one latency.
func (c *kvClient) noteAll(kind workload.Kind, n int, start int64, err error) {
	r := c.r
	end := r.now()
	if err != nil {
		c.fail(n, err)
		return
	}
	r.ok.Add(int64(n))
	r.lastOK.Store(end)
	if end >= r.from.Load() && end <= r.to.Load() {
		r.took[kind].record(c.id, end-start)
	}
}

// fail counts n operations that failed. It is separate so that note's err need not escape.
//
//go:noinline
func (c *kvClient) fail(n int, err error) {
	c.r.lastErr.Store(&err)
	c.r.failed.Add(int64(n))
	if why := refusalOf(err); why != "" {
		c.r.refuseOnce.Do(func() {
			c.r.refused.Store(&RefusedError{Why: why, Err: err})
			close(c.r.refusal)
		})
	}
	c.target = (c.target + 1) % len(c.r.targets)
	c.store.use(c.r.targets[c.target])
	c.sleep(int64(refusalPause))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/braidlog/braid/internal/check"
)

const (
	steadyClients = 6
	steadyKeys    = 8                     // of each lap, so that no key has a history that takes long to check
	steadyPace    = 4 * time.Millisecond  // from a client's request to its next one
	steadyPause   = 20 * time.Millisecond // before a request is repeated
	steadyAttempt = 3 * time.Second
	// steadyPatience is the time after which a client gives a request up.
	steadyPatience = 10 * time.Second
)

// steady are clients that repeat a request until it is answered. Their requests are a history, which is checked.
type steady struct {
	t       *testing.T
	began   time.Time
	history check.Recorder
	stop    context.CancelFunc
	workers sync.WaitGroup
	mu      sync.Mutex
	laps    int
	lap     lap
}

// lap is a part of a load.
type lap struct {
	requests int
	repeated int           // attempts that failed
	why      error         // of the last one of these
	longest  time.Duration // until a request was answered
	what     string        // that request
}

func (l *lap) String() string {
	text := fmt.Sprintf("%5d requests, the longest %4d ms (%s)", l.requests, l.longest.Milliseconds(), l.what)
	if l.repeated > 0 {
		text += fmt.Sprintf(", %d attempts repeated, the last one after %q", l.repeated, l.why)
	}
	return text
}

// startSteady starts the clients. Each client has all endpoints.
func startSteady(t *testing.T, endpoints []string) *steady {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &steady{t: t, began: time.Now(), stop: cancel}
	for i := range steadyClients {
		client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(),
			DialTimeout: 2 * time.Second, DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		s.workers.Go(func() { s.run(ctx, client, i) })
	}
	t.Cleanup(s.end)
	return s
}

// end waits for the requests in progress.
func (s *steady) end() {
	s.stop()
	s.workers.Wait()
}

// next ends a lap and returns it. The next one has other keys.
func (s *steady) next() (ended lap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, s.lap = s.lap, lap{}
	s.laps++
	return ended
}

// continues waits until the clients have made 20 more requests each, on average.
func (s *steady) continues(what string) {
	s.t.Helper()
	answered := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lap.requests
	}
	before := answered()
	eventually(s.t, "requests are answered: "+what, func(context.Context) bool {
		return answered() > before+20*steadyClients
	})
}

func (s *steady) run(ctx context.Context, client *clientv3.Client, worker int) {
	pace := time.NewTicker(steadyPace)
	defer pace.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		s.mu.Lock()
		key := fmt.Sprintf("steady-%d-%d", s.laps, (n/3+worker)%steadyKeys)
		s.mu.Unlock()
		w := steadyClient{steady: s, ctx: ctx, client: client, worker: worker, key: key}
		switch n % 3 {
		case 0:
			w.put(fmt.Sprintf("%d.%d", worker, n))
		case 1:
			w.swap(fmt.Sprintf("%d.%d", worker, n))
		case 2:
			w.get()
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
}

// steadyClient is a client with the key that it uses.
type steadyClient struct {
	*steady
	ctx    context.Context // ends the load, and no request
	client *clientv3.Client
	worker int
	key    string
}

// do repeats an attempt until it succeeds.
func (w *steadyClient) do(what string, attempt func(ctx context.Context) error) {
	began := time.Now()
	for {
		limited, cancel := context.WithTimeout(context.Background(), steadyAttempt)
		err := attempt(limited)
		cancel()
		took := time.Since(began)
		w.note(what, took, err)
		if err == nil {
			return
		}
		if took > steadyPatience || !mayRepeat(err) {
			w.t.Errorf("%s of %s failed after %s: %v", what, w.key, took, err)
			return
		}
		<-time.After(steadyPause)
	}
}

// mayRepeat reports whether clients repeat a request after an error.
func mayRepeat(err error) bool {
	code := status.Code(err)
	if known := (rpctypes.EtcdError{}); errors.As(err, &known) {
		code = known.Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

func (s *steady) note(what string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lap.repeated++
		s.lap.why = err
		return
	}
	s.lap.requests++
	if took > s.lap.longest {
		s.lap.longest, s.lap.what = took, what
	}
}

func (s *steady) now() int64 { return int64(time.Since(s.began)) }

// begin records the call of an operation. An attempt that is not answered may take effect at any later time.
func (w *steadyClient) begin(kind check.Kind, value, expect string) (id int) {
	return w.history.Begin(check.Operation{Client: w.worker, Kind: kind, Key: w.key, Value: value, Expect: expect,
		Call: w.now()})
}

func (w *steadyClient) put(value string) {
	w.do("put", func(ctx context.Context) error {
		id := w.begin(check.Put, value, "")
		r, err := w.client.Put(ctx, w.key, value, clientv3.WithPrevKV())
		if err == nil {
			w.history.End(id, w.now(), "", true, written(r.PrevKv))
		}
		return err
	})
}

// written is how often a key was written, with the write that found this; no key is ever deleted.
func written(before *mvccpb.KeyValue) uint64 { return uint64(before.GetVersion()) + 1 }

// get returns the value and its revision; 0: there is none.
func (w *steadyClient) get() (value string, revision int64) {
	w.do("get", func(ctx context.Context) error {
		id := w.begin(check.Get, "", "")
		r, err := w.client.Get(ctx, w.key)
		if err != nil {
			return err
		}
		var version int64
		value, revision = "", 0
		for _, kv := range r.Kvs {
			value, revision, version = string(kv.Value), kv.ModRevision, kv.Version
		}
		w.history.End(id, w.now(), value, revision > 0, uint64(version))
		return nil
	})
	return value, revision
}

// swap replaces the value that it reads, unless that has changed since.
func (w *steadyClient) swap(value string) {
	had, revision := w.get()
	kind := check.Swap
	if revision == 0 {
		kind = check.Put // there is nothing to swap
	}
	w.do("txn", func(ctx context.Context) error {
		id := w.begin(kind, value, had)
		r, err := w.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(w.key), "=", revision)).
			Then(clientv3.OpPut(w.key, value, clientv3.WithPrevKV())).Commit()
		switch {
		case err != nil:
		case r.Succeeded:
			w.history.End(id, w.now(), "", true, written(r.Responses[0].GetResponsePut().PrevKv))
		default:
			w.history.Fail(id)
		}
		return err
	})
}

// check ends the load, and requires that its history is linearizable.
func (s *steady) check() {
	s.t.Helper()
	s.end()
	history := s.history.History()
	began := time.Now()
	require.NoError(s.t, check.Linearizable(history, time.Minute))
	s.t.Logf("the history of %d operations is linearizable, checked in %s", len(history), time.Since(began))
}

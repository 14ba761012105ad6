package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// settleTimeout is the time without any event after which watches are not waited for.
const settleTimeout = 20 * time.Second

// watchStream is a stream with several watches, on a connection of its own. Nothing is received before read is called.
type watchStream struct {
	conn   *grpc.ClientConn
	stream etcdserverpb.Watch_WatchClient
	cancel context.CancelFunc
	prevKV bool
	events *atomic.Int64       // of all streams
	seen   func(*mvccpb.Event) // called for each event, unless nil
	mu     sync.Mutex          // protects logs
	logs   map[int64]*watchLog // by the watch's id
	done   chan struct{}       // closed when read has returned
}

func openWatchStream(ctx context.Context, endpoint string, events *atomic.Int64,
	further ...grpc.DialOption) (*watchStream, error) {
	conn, err := connect(endpoint, nil, further...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := etcdserverpb.NewWatchClient(conn).Watch(ctx, grpc.WaitForReady(true))
	if err != nil {
		cancel()
		_ = conn.Close()
		return nil, err
	}
	return &watchStream{conn: conn, stream: stream, cancel: cancel, events: events, logs: map[int64]*watchLog{}}, nil
}

// watch requests a watch.
func (s *watchStream) watch(w *watchLog) error {
	s.mu.Lock()
	id := int64(len(s.logs) + 1)
	s.logs[id] = w
	s.mu.Unlock()
	create := &etcdserverpb.WatchCreateRequest{Key: []byte(w.prefix), StartRevision: w.from, WatchId: id,
		RangeEnd: []byte(clientv3.GetPrefixRangeEnd(w.prefix)), PrevKv: s.prevKV}
	return s.stream.Send(&etcdserverpb.WatchRequest{
		RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: create}})
}

// read begins to receive.
func (s *watchStream) read() {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		for {
			resp, err := s.stream.Recv()
			if err != nil {
				s.end(err)
				return
			}
			s.take(resp)
		}
	}()
}

// end notes in all watches that the stream ended.
func (s *watchStream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.logs {
		w.end(err.Error(), 0)
	}
}

func (s *watchStream) take(resp *etcdserverpb.WatchResponse) {
	s.mu.Lock()
	w := s.logs[resp.WatchId]
	s.mu.Unlock()
	if w == nil {
		s.end(fmt.Errorf("the answer for watch %d, which was not requested: %s", resp.WatchId, resp.CancelReason))
		return
	}
	w.add(resp)
	s.events.Add(int64(len(resp.Events)))
	if s.seen != nil {
		for _, e := range resp.Events {
			s.seen(e)
		}
	}
	if resp.Canceled {
		w.end(resp.CancelReason, resp.CompactRevision)
	}
}

// close ends the stream and waits for read.
func (s *watchStream) close() {
	s.cancel()
	if s.done != nil {
		<-s.done
	}
	_ = s.conn.Close()
}

// add takes an answer's events.
func (w *watchLog) add(resp *etcdserverpb.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created = w.created || resp.Created
	for _, e := range resp.Events {
		w.events = append(w.events, keyWrite{e.Kv.ModRevision, string(e.Kv.Key)})
	}
	if n := len(w.events); w.caughtUp.IsZero() && n > 0 && w.events[n-1].revision >= w.target {
		w.caughtUp = time.Now()
	}
}

func (w *watchLog) end(reason string, compact int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended, w.reason, w.compact = true, reason, compact
	}
}

// isCreated reports whether the server has confirmed the watch, or ended it.
func (w *watchLog) isCreated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.created || w.ended
}

// until waits until a condition holds for all watches. It reports false if no event came for settleTimeout.
func until(ctx context.Context, events *atomic.Int64, logs []*watchLog, holds func(*watchLog) bool) (bool, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	at, last := time.Now(), events.Load()
	for _, w := range logs {
		for !holds(w) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return false, ctx.Err()
			}
			if now := events.Load(); now != last {
				at, last = time.Now(), now
			} else if time.Since(at) > settleTimeout {
				return false, nil
			}
		}
	}
	return true, nil
}

// settle waits until the watches have the events of all recorded writes, and checks them.
func (l *writeLedger) settle(ctx context.Context, events *atomic.Int64, logs []*watchLog) (violations []string,
	err error) {
	var prefixes []string
	for _, w := range logs {
		prefixes = append(prefixes, w.prefix)
	}
	writes := l.byPrefix(prefixes)
	_, err = until(ctx, events, logs, func(w *watchLog) bool {
		revision, ended := w.last()
		all := writes[w.prefix]
		return ended || len(all) == 0 || all[len(all)-1].revision < w.from || revision >= all[len(all)-1].revision
	})
	if err != nil {
		return nil, err
	}
	for _, w := range logs {
		violations = append(violations, w.check(writes[w.prefix], l.unknown)...)
	}
	return violations, nil
}

// currentRevision returns the revision of the store, by a linearizable read at an endpoint.
func currentRevision(ctx context.Context, kv etcdserverpb.KVClient) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}})
	return r.GetHeader().GetRevision(), err
}

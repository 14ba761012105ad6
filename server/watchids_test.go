package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// cancelWatch sends the request to cancel a watch.
func (w *rawWatch) cancelWatch(id int64) {
	w.send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

// keepPutting puts values under all keys until the returned function is called.
func (f *fixture) keepPutting(t testing.TB, ctx context.Context, value string, keys ...string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var writers sync.WaitGroup
	for _, key := range keys {
		writers.Go(func() {
			for ctx.Err() == nil {
				if _, err := f.client.Put(ctx, key, value); err != nil && ctx.Err() == nil {
					t.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		writers.Wait()
	}
}

// A watch id that is used again and again gets events of its own key only, however many events of the watch before
// are on their way. The store reads events of the past in another way than new ones, so both are tried; and so are
// events that are cut into pieces.
func TestWatchIDsUsedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds int
		past   int64 // how many revisions a watch begins in the past
		value  string
	}{
		{"new events", 400, 0, "v"}, {"past events", 40, 60, "v"}, {"pieces", 40, 60, strings.Repeat("x", 8<<10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, func(cfg *Config) { cfg.MaxRequestBytes = 16 << 10 })
			ctx := testContext(t)
			keys := []string{"a", "b", "c"}
			defer f.keepPutting(t, ctx, c.value, keys...)()
			w := f.rawWatch(t, ctx)
			now := int64(0)
			for round := range c.rounds {
				key, from := keys[round%len(keys)], int64(0)
				if c.past > 0 {
					from = max(1, now-c.past)
				}
				w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
					Key: []byte(key), WatchId: 7, StartRevision: from, Fragment: round%2 == 0, PrevKv: round%3 == 0}}})
				now = w.readsOnly(key, round%4)
				w.cancelWatch(7)
			}
		})
	}
}

// readsOnly receives the answer to the newest request for a watch, and then some events, all of them of its key. It
// returns the revision of the answer.
func (w *rawWatch) readsOnly(key string, responses int) (revision int64) {
	w.t.Helper()
	resp := w.recv()
	for ; !resp.Created; resp = w.recv() {
	}
	require.False(w.t, resp.Canceled, resp.CancelReason)
	revision = resp.Header.Revision
	for range responses {
		resp = w.recv()
		require.EqualValues(w.t, 7, resp.WatchId)
		require.False(w.t, resp.Canceled, fmt.Sprint(resp))
		for _, e := range resp.Events {
			require.Equal(w.t, key, string(e.Kv.Key))
		}
	}
	return revision
}

package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// bareWatch is a stream of watches without goroutines: the test carries out its steps.
func (f *fixture) bareWatch(t testing.TB, sent *recordingWatch) *watchStream {
	ws := &watchStream{
		s: f.Server, stream: sent, events: f.store.KV().NewWatchStream(), watches: map[int64]*watch{},
		fed:  map[mvcc.WatchID]*watch{},
		wake: make(chan struct{}, 1), done: make(chan struct{}), fetched: make(chan fetched),
	}
	t.Cleanup(func() {
		close(ws.done)
		ws.close()
	})
	return ws
}

// TestProgressWaitsForNewWatches: a report of progress is for all watches of the stream. One that the store made before
// a watch of older revisions was created says nothing about that watch, whose client would miss events if it resumed
// behind the reported revision.
func TestProgressWaitsForNewWatches(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	put, err := f.client.Put(ctx, "old", "1")
	require.NoError(t, err)
	sent := &recordingWatch{ctx: ctx}
	ws := f.bareWatch(t, sent)
	require.NoError(t, ws.create(&pb.WatchCreateRequest{Key: []byte("k")}))
	ws.askedProgress = true
	require.False(t, ws.answerProgress(), "the store has reported")
	require.NoError(t, ws.create(&pb.WatchCreateRequest{Key: []byte("old"), StartRevision: 1}))
	require.NoError(t, ws.sendAnswers())

	next := func() {
		resp := <-ws.events.Chan()
		require.NoError(t, ws.deliver(&resp))
	}
	next()
	require.Len(t, sent.sent, 2, "the report is too old")
	next()
	require.Len(t, sent.sent[2].Events, 1)
	eventually(t, "progress", func() bool { return !ws.answerProgress() })
	next()
	require.EqualValues(t, noWatch, sent.sent[3].WatchId)
	require.Equal(t, put.Header.Revision, sent.sent[3].Header.Revision)
}

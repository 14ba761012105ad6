package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"

	"github.com/braidlog/braid/internal/testsize"
)

// However clients behave, a stop that was asked for ends soon.
func TestStopWithAnyClient(t *testing.T) {
	testsize.Long(t)
	f := start(t)
	ctx := testContext(t)
	conn := f.client.ActiveConnection()
	require.NoError(t, lock(ctx, conn, f.grant(t, ctx)))
	f.waiters(t, ctx, conn, lock, 1, 20) // wait for a lock
	f.waiters(t, ctx, conn, campaign, 21, 20)
	observe, err := epb.NewElectionClient(conn).Observe(ctx, &epb.LeaderRequest{Name: []byte("other")})
	require.NoError(t, err)
	_ = observe
	unread := f.rawWatch(t, ctx)
	unread.create(&pb.WatchCreateRequest{Key: []byte("k")})
	for range 20 {
		_, err := f.client.Put(ctx, "k", strings.Repeat("x", 64<<10))
		require.NoError(t, err)
	}
	for _, sends := range []string{
		"", // nothing
		// half a request
		"POST /v3/kv/put HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
		// a watch
		"POST /v3/watch HTTP/1.1\r\nHost: a\r\nContent-Length: 37\r\n\r\n" + `{"create_request":{"key":"a2V5"}}    ` + "GET ",
		http2Preface, // half a greeting
	} {
		c, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte(sends))
		require.NoError(t, err)
	}
	halfPut(t, ctx, f)
	eventually(t, "the watches", func() bool { return f.metrics.WatchStreams.Load() >= 3 })
	began := time.Now()
	require.NoError(t, f.Close())
	require.Less(t, time.Since(began), 2*time.Second)
}

// halfPut begins a put, and does not send the end of it.
func halfPut(t testing.TB, ctx context.Context, f *fixture) {
	body := &stalledBody{ctx}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.addr+"/etcdserverpb.KV/Put", body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("TE", "trailers")
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	t.Cleanup(transport.CloseIdleConnections)
	go func() {
		resp, err := transport.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
	}()
}

// stalledBody is a request whose client goes silent.
type stalledBody struct{ ctx context.Context }

func (b *stalledBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (b *stalledBody) Close() error { return nil }

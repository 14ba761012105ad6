package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// fixture is a server over a fake log and a client of it.
type fixture struct {
	*Server
	fake   *fakeLog
	client *clientv3.Client
	addr   string
	tls    *tls.Config // of clients; nil: plain
}

func start(t testing.TB, change ...func(*Config)) *fixture {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fixture{addr: l.Addr().String()}
	cfg := Config{
		Node: braid.Options{
			Self: 0x10, Cluster: 0x77, ElectionTimeout: 200 * time.Millisecond,
			Members: []braid.Member{{ID: 0x10, PeerURLs: []string{"http://127.0.0.1:1"}}},
		},
		Store: store.Options{Dir: t.TempDir(), NoSync: true, BcryptCost: 4},
		Name:  "one", AdvertiseClientURLs: []string{"http://" + f.addr}, ClusterToken: "test",
		ListenClient: []net.Listener{l}, Logger: slog.New(slog.DiscardHandler),
		openLog: func(o braid.Options, sm braid.DurableStateMachine) (Log, error) {
			f.fake = openFakeLog(o, sm)
			return f.fake, nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	f.Server, err = Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Server.Close()) })
	f.client = f.dial(t, clientv3.Config{})
	return f
}

func (f *fixture) dial(t testing.TB, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	if cfg.TLS == nil {
		cfg.TLS = f.tls
	}
	scheme := "http://"
	if cfg.TLS != nil {
		scheme = "https://"
	}
	cfg.Endpoints, cfg.Logger, cfg.DialTimeout = []string{scheme + f.addr}, zap.NewNop(), 30*time.Second
	c, err := clientv3.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 2*time.Millisecond, "waited too long for "+what)
}

func TestPutGet(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	put, err := f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	require.EqualValues(t, 2, put.Header.Revision)
	require.EqualValues(t, 0x77, put.Header.ClusterId)
	require.EqualValues(t, 0x10, put.Header.MemberId)
	require.EqualValues(t, 2, put.Header.RaftTerm)
	got, err := f.client.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "k=v", fmt.Sprintf("%s=%s", got.Kvs[0].Key, got.Kvs[0].Value))
}

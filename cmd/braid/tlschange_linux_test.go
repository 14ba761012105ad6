package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testcert"
	"github.com/braidlog/braid/internal/testsize"
)

// gaps writes through any member of a cluster until stop is called, and measures the longest time without an
// acknowledgement.
type gaps struct {
	writes  atomic.Int64
	longest atomic.Int64
	stop    func()
}

func newGaps(t *testing.T, endpoints []string) *gaps {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: testTimeout})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	g, ended := &gaps{}, make(chan struct{})
	go func() {
		defer close(ended)
		var last time.Time
		for n := 0; ctx.Err() == nil; n++ {
			within, done := context.WithTimeout(ctx, 300*time.Millisecond)
			_, err := client.Put(within, "key", fmt.Sprint(n))
			<-time.After(5 * time.Millisecond) // leave the machine to the members
			done()
			if err != nil {
				continue
			}
			if now := time.Now(); !last.IsZero() {
				g.longest.Store(max(g.longest.Load(), int64(now.Sub(last))))
			}
			last = time.Now()
			g.writes.Add(1)
		}
	}()
	g.stop = func() { cancel(); <-ended; client.Close() }
	t.Cleanup(g.stop)
	return g
}

// settle waits until the cluster acknowledges some further writes.
func (g *gaps) settle(t *testing.T) {
	t.Helper()
	from := g.writes.Load()
	eventually(t, "writes", func(context.Context) bool { return g.writes.Load() > from+20 })
}

// TestPeersFromPlainToTLS changes the links between members according to docs/using/operations.md: certificates for
// one member after the other, then the peer URLs, then one member after the other accepts TLS alone. Writes continue.
func TestPeersFromPlainToTLS(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	ca := testcert.New(t)
	free, err := ports.Free("127.0.0.1", 6)
	require.NoError(t, err)
	var all []serveFlags
	var clients []string
	initial := func(scheme string) string {
		var list []string
		for _, f := range all {
			list = append(list, f.name+"="+scheme+"://"+f.peer)
		}
		return strings.Join(list, ",")
	}
	for i := range 3 {
		f := serveFlags{fmt.Sprint("m", i+1), dataDir(t), fmt.Sprintf("127.0.0.1:%d", free[2*i]),
			fmt.Sprintf("127.0.0.1:%d", free[2*i+1])}
		all, clients = append(all, f), append(clients, f.client)
		ca.Issue(f.name)
	}
	running := make([]*invocation, 3)
	start := func(i int, scheme string, more ...string) {
		f := all[i]
		running[i], _ = begin(t, "",
			append([]string{"serve", "--name", f.name, "--data-dir", f.dir, "--initial-cluster", initial(scheme),
				"--listen-client-urls", "http://" + f.client, "--listen-peer-urls", scheme + "://" + f.peer}, more...)...)
	}
	certificates := func(i int) []string {
		name := all[i].name
		return []string{"--peer-cert-file", ca.Path(name + ".crt"), "--peer-key-file", ca.Path(name + ".key"),
			"--peer-trusted-ca-file", ca.Path("ca.crt")}
	}
	again := func(i int, scheme string, more ...string) {
		running[i].stop()
		start(i, scheme, append(certificates(i), more...)...)
		eventually(t, "the member serves", func(ctx context.Context) bool { return healthy(ctx, all[i].client) })
	}
	for i := range all {
		start(i, "http")
	}
	g := newGaps(t, clients)
	g.settle(t)
	g.longest.Store(0)
	for i := range all {
		again(i, "http", "--peer-tls-by-url")
		g.settle(t)
	}
	members := strings.Split(ok(t, "ctl", "member", "list", "--endpoints", clients[0]), "\n")
	require.Len(t, members, 3)
	for _, line := range members { // ID, status, name, …
		fields := strings.Split(line, ", ")
		i := slices.IndexFunc(all, func(f serveFlags) bool { return f.name == fields[2] })
		ok(t, "ctl", "member", "update", fields[0], "--peer-urls", "https://"+all[i].peer, "--endpoints", clients[0])
		g.settle(t)
	}
	for i := range all {
		again(i, "https")
		g.settle(t)
	}
	g.stop()
	t.Logf("%d writes, at most %v without one", g.writes.Load(), time.Duration(g.longest.Load()))
	require.Less(t, time.Duration(g.longest.Load()), 3*time.Second)
	for _, c := range running {
		require.NotContains(t, c.stderr.String(), "level=ERROR")
	}
}

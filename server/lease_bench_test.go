package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/braidlog/braid"
)

// BenchmarkRealGrant compares grants of leases with puts of as many clients, which are spread over the members: both
// are one small command.
func BenchmarkRealGrant(b *testing.B) {
	for name, kind := range map[string]func(*Config){
		"raft": func(*Config) {}, "iss": func(c *Config) { c.Node.Protocol = braid.ISS{} },
	} {
		b.Run(name, func(b *testing.B) {
			c := startReal(b, 3, kind)
			c.leader()
			var conns []*grpc.ClientConn
			for _, m := range c.members {
				conns = append(conns, c.client(m.ID).ActiveConnection())
			}
			puts := rateOf(b, conns, func(ctx context.Context, conn *grpc.ClientConn, i int64) error {
				put := &pb.PutRequest{Key: fmt.Append(nil, i), Value: []byte("v")}
				return second(pb.NewKVClient(conn).Put(ctx, put))
			})
			grants := rateOf(b, conns, func(ctx context.Context, conn *grpc.ClientConn, _ int64) error {
				return second(pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 600}))
			})
			b.ReportMetric(puts, "puts/s")
			b.ReportMetric(grants, "grants/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// rateOf returns how many calls a second 64 clients make, of b.N.
func rateOf(b *testing.B, conns []*grpc.ClientConn,
	call func(context.Context, *grpc.ClientConn, int64) error) float64 {
	var next atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for n := range 64 {
		clients.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := call(b.Context(), conns[n%len(conns)], i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	require.False(b, b.Failed())
	return float64(b.N) / time.Since(began).Seconds()
}

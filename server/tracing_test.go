package server

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// collector takes spans, as a collector of OpenTelemetry does.
type collector struct {
	coltrace.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*otlp.Span
	about map[string]string // the resource
}

// Export implements coltrace.TraceServiceServer.
func (c *collector) Export(_ context.Context, r *coltrace.ExportTraceServiceRequest) (
	*coltrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		for _, a := range of.Resource.Attributes {
			c.about[a.Key] = a.Value.GetStringValue()
		}
		for _, s := range of.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	return new(coltrace.ExportTraceServiceResponse), nil
}

// collect starts a collector and returns its address.
func collect(t *testing.T) (*collector, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c, g := &collector{about: map[string]string{}}, grpc.NewServer()
	coltrace.RegisterTraceServiceServer(g, c)
	go g.Serve(l)
	t.Cleanup(g.Stop)
	return c, l.Addr().String()
}

// stagesOf are the names of the spans below the one of a method, by the time when they began. ok is false if there is
// none of the method.
func (c *collector) stagesOf(t *testing.T, method string) (names []string, root *otlp.Span) {
	i := slices.IndexFunc(c.spans, func(s *otlp.Span) bool { return s.Name == method })
	if i < 0 {
		return nil, nil
	}
	root = c.spans[i]
	last := root.StartTimeUnixNano
	for _, s := range c.spans {
		if string(s.ParentSpanId) != string(root.SpanId) {
			continue
		}
		require.Equal(t, root.TraceId, s.TraceId)
		require.GreaterOrEqual(t, s.StartTimeUnixNano, last)
		require.GreaterOrEqual(t, s.EndTimeUnixNano, s.StartTimeUnixNano)
		require.LessOrEqual(t, s.EndTimeUnixNano, root.EndTimeUnixNano)
		last, names = s.StartTimeUnixNano, append(names, s.Name)
	}
	return names, root
}

// TestSpansOfCalls: each call has a span, and one for each of its stages below it, also if its client began the trace.
func TestSpansOfCalls(t *testing.T) {
	t.Parallel()
	c, address := collect(t)
	cluster := startReal(t, 3, func(cfg *Config) {
		cfg.Tracing = &Tracing{Address: address, Service: "braid", Instance: cfg.Name, PerMillion: MaxTracingRate}
	})
	ctx := testContext(t)
	id := cluster.leader()
	client := cluster.client(id)
	putUntil(t, ctx, client, "k", "v")
	_, err := client.Get(ctx, "k")
	require.NoError(t, err)
	_, err = client.Get(ctx, "k", clientv3.WithSerializable())
	require.NoError(t, err)
	const traced = "0af7651916cd43dd8448eb211c80319c"
	_, err = client.Delete(metadata.AppendToOutgoingContext(ctx, "traceparent", "00-"+traced+"-b7ad6b7169203331-01"), "k")
	require.NoError(t, err)
	cluster.stop(id) // it sends what it has

	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, "braid", c.about["service.name"])
	require.Equal(t, cluster.configs[id].Name, c.about["service.instance.id"])
	names, _ := c.stagesOf(t, "etcdserverpb.KV/Put")
	require.Equal(t, []string{"check", "queue", "replicate", "order", "apply", "answer"},
		slices.DeleteFunc(names, func(s string) bool { return s == "append" }))
	names, _ = c.stagesOf(t, "etcdserverpb.KV/Range")
	require.Equal(t, []string{"check", "queue", "confirm", "wait", "read"}, names)
	names, root := c.stagesOf(t, "etcdserverpb.KV/DeleteRange")
	require.Contains(t, names, "replicate")
	require.Equal(t, []byte("\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"), root.TraceId)
}

// TestSpansThatAreNotWanted: without a rate only calls are traced whose clients want it, and without a collector a
// server works, and ends.
func TestSpansThatAreNotWanted(t *testing.T) {
	c, address := collect(t)
	f := start(t, func(cfg *Config) { cfg.Tracing = &Tracing{Address: address} })
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	_, err = f.client.Delete(metadata.AppendToOutgoingContext(ctx, "traceparent",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), "k")
	require.NoError(t, err)
	require.NoError(t, f.Server.Close())
	c.mu.Lock()
	names, _ := c.stagesOf(t, "etcdserverpb.KV/Put")
	require.Empty(t, names)
	names, _ = c.stagesOf(t, "etcdserverpb.KV/DeleteRange")
	require.Equal(t, []string{"check", "log"}, names, "the log of the test notes no stages")
	c.mu.Unlock()

	lost := start(t, func(cfg *Config) { cfg.Tracing = &Tracing{Address: freeAddr(t), PerMillion: MaxTracingRate} })
	_, err = lost.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, lost.Server.Close())
	require.Less(t, time.Since(began), 30*time.Second)

	_, err = newTracing(&Tracing{PerMillion: MaxTracingRate + 1}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "1000001")
	var none *tracing
	require.Empty(t, none.options())
	require.NoError(t, none.close())
}

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// Tracing sends spans of OpenTelemetry to a collector: one for each call, and for each stage of a unary call.
type Tracing struct {
	// Address is where the collector takes OTLP over gRPC, in clear text; default localhost:4317.
	Address string
	// Service is the name of the service, for all members of the cluster; default etcd. Instance tells members apart,
	// unless it is "".
	Service, Instance string
	// PerMillion is how many of a million calls are traced, of those whose client does not say whether to.
	PerMillion int
}

// MaxTracingRate is the greatest Tracing.PerMillion.
const MaxTracingRate = 1_000_000

// tracing is the tracing of a server; nil: it does none.
type tracing struct {
	provider *tracesdk.TracerProvider
	tracer   trace.Tracer
}

// newTracing begins to trace. It does not wait for the collector.
func newTracing(cfg *Tracing, logger *slog.Logger) (*tracing, error) {
	if cfg == nil {
		return nil, nil
	}
	if cfg.PerMillion < 0 || cfg.PerMillion > MaxTracingRate {
		return nil, fmt.Errorf("server: tracing of %d calls in a million", cfg.PerMillion)
	}
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithInsecure(),
		otlptracegrpc.WithEndpoint(cmp.Or(cfg.Address, "localhost:4317")))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	about := []attribute.KeyValue{attribute.String("service.name", cmp.Or(cfg.Service, "etcd"))}
	if cfg.Instance != "" {
		about = append(about, attribute.String("service.instance.id", cfg.Instance))
	}
	sampler := tracesdk.TraceIDRatioBased(float64(cfg.PerMillion) / MaxTracingRate)
	provider := tracesdk.NewTracerProvider(tracesdk.WithBatcher(exporter),
		tracesdk.WithResource(resource.NewSchemaless(about...)), tracesdk.WithSampler(tracesdk.ParentBased(sampler)))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("spans are lost", "err", err) }))
	return &tracing{provider, provider.Tracer("github.com/braidlog/braid/server")}, nil
}

// options make the gRPC server trace its calls.
func (t *tracing) options() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider),
		otelgrpc.WithPropagators(
			propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
	))}
}

// emit makes a span of each stage of a call that took so long.
func (t *tracing) emit(p *passage, took time.Duration) {
	if t == nil || !trace.SpanFromContext(p).IsRecording() {
		return
	}
	for _, s := range p.stages(took) {
		_, span := t.tracer.Start(p, s.stage, trace.WithTimestamp(p.began.Add(s.from)))
		span.End(trace.WithTimestamp(p.began.Add(s.to)))
	}
}

// flushTime is how long the end of a server waits for the collector.
const flushTime = time.Second

// close sends what was not sent.
func (t *tracing) close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("tracing: %w", err)
	}
	return nil
}

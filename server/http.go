package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	gw "github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"

	kvgw "go.etcd.io/etcd/api/v3/etcdserverpb/gw"
	"go.etcd.io/etcd/api/v3/version"
	egw "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb/gw"
	lgw "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb/gw"

	"github.com/braidlog/braid/server/internal/metrics"
	"github.com/braidlog/braid/server/internal/page"
)

// route is a pattern of http.ServeMux and its handler.
type route struct {
	pattern string
	handler http.Handler
}

func serve(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.pattern, r.handler)
	}
	return mux
}

// metricsRoutes are the routes of a listener for metrics. Any client may read the state of the member there, but none
// of its data.
func (s *Server) metricsRoutes() []route {
	var process prometheus.Gatherer
	if !s.cfg.NoProcessMetrics {
		process = prometheus.DefaultGatherer
	}
	metrics := promhttp.HandlerFor(metrics.Gatherer{Own: s.cfg.Registry, Process: process}, promhttp.HandlerOpts{})
	return append(s.checks.routes(), route{"GET /metrics", metrics})
}

// DashboardPath is where [Dashboard] has its files, besides /.
const DashboardPath = page.AssetsPath

// Dashboard serves the files of the dashboard, which have no data of a cluster: the page at /, the others below
// [DashboardPath]. The page requests /braid/cluster of its own server. The handler is safe for concurrent use.
func Dashboard() http.Handler { return page.Assets() }

// clientRoutes are the routes of a listener for clients, besides gRPC.
func (s *Server) clientRoutes() []route {
	dashboard := Dashboard()
	routes := append(s.metricsRoutes(),
		route{"GET /version", http.HandlerFunc(s.serveVersion)},
		route{"GET /braid/status", s.forUsers(s.serveStatusJSON)},
		route{"GET /braid/cluster", s.forUsers(s.gatherer.serve)},
		route{"GET /{$}", dashboard}, route{"GET " + DashboardPath, dashboard})
	routes = append(routes, s.debugRoutes()...)
	if s.gateway.mux != nil {
		calls := http.MaxBytesHandler(s.gateway.mux, int64(2*s.cfg.MaxRequestBytes+frameOverhead)) // base64
		routes = append(routes, route{"/v3/", s.countJSON(calls)})
	}
	return routes
}

// countJSON counts calls that come as JSON as those of their clients. The gateway makes them over a connection of its
// own.
func (s *Server) countJSON(calls http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := s.intake.connOf(r)
		defer conn.closed()
		if err := s.intake.begin(conn.from); err != nil {
			_, outbound := gw.MarshalerForRequest(s.gateway.mux, r)
			gw.HTTPError(r.Context(), s.gateway.mux, outbound, w, r, err)
			return
		}
		defer s.intake.end(conn.from)
		calls.ServeHTTP(w, r)
	})
}

// newHTTP makes the HTTP server of clients: everything that is not gRPC.
func (s *Server) newHTTP() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // TLS ends at the sniffer
	return &http.Server{
		Handler: s.withGRPC(s.withAccess(serve(s.clientRoutes()))), Protocols: protocols, ConnContext: withConn,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: int(min(s.cfg.MaxConcurrentStreams, 1<<16)), SendPingTimeout: pingAfter,
			PingTimeout:               pingTimeout,
			MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
		},
		ReadHeaderTimeout: sniffTimeout, IdleTimeout: idleTimeout, ErrorLog: discardLog,
	}
}

// newMetricsHTTP makes the HTTP server of the listeners for metrics. It accepts no request that has a body.
func (s *Server) newMetricsHTTP() *http.Server {
	return &http.Server{
		Handler:     http.MaxBytesHandler(serve(s.metricsRoutes()), 0),
		ReadTimeout: sniffTimeout, WriteTimeout: time.Minute, IdleTimeout: idleTimeout, ErrorLog: discardLog,
	}
}

// idleTimeout is how long an idle connection is kept.
const idleTimeout = 5 * time.Minute

// discardLog is for errors of clients, which are not logged.
var discardLog = log.New(io.Discard, "", 0)

// pingAfter is how long a client of HTTP/2 may be silent before the server pings it. pingTimeout
// is how long it may take to answer.
const pingAfter, pingTimeout = 2 * time.Minute, 20 * time.Second

// connKey is the key of a request's connection in its context.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// tlsOf is the state of TLS below a request, which ends at the sniffer; nil: the request came in clear text.
func tlsOf(r *http.Request) *tls.ConnectionState {
	conn, ok := r.Context().Value(connKey{}).(*sniffedConn)
	if !ok || conn.tls == nil {
		return nil
	}
	state := conn.tls.ConnectionState()
	return &state
}

// remoteOf is the address that a request came from; nil: the request came over no connection of clients.
func remoteOf(r *http.Request) net.Addr {
	if conn, ok := r.Context().Value(connKey{}).(*sniffedConn); ok {
		return conn.RemoteAddr()
	}
	return nil
}

// withGRPC passes on gRPC calls that came over TLS; see sniffer.
func (s *Server) withGRPC(other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := tlsOf(r)
		if state == nil || !isCall(r) {
			defer s.meterBody(w, r)()
			other.ServeHTTP(w, r)
			return
		}
		call := r.WithContext(r.Context())
		call.TLS = state // who the client is
		s.serveCall(w, call)
	})
}

func (s *Server) serveVersion(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, version.Versions{
		Server: version.Version, Cluster: s.store.ClusterVersion() + ".0", Storage: s.store.StorageVersion(),
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // an error is the client's
}

// gateway offers the services as JSON. It is a client of the gRPC server, connected in memory.
type gateway struct {
	mux  *gw.ServeMux
	conn *grpc.ClientConn
	pipe *bufconn.Listener
}

func (s *Server) newGateway() (*gateway, error) {
	if s.cfg.NoGateway {
		return &gateway{}, nil
	}
	pipe := bufconn.Listen(1 << 20)
	conn, err := grpc.NewClient("passthrough:gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<31-1)))
	if err != nil {
		return nil, err
	}
	g := &gateway{conn: conn, pipe: pipe,
		mux: gw.NewServeMux(gw.WithMarshalerOption(gw.MIMEWildcard, &gw.HTTPBodyMarshaler{
			Marshaler: &gw.JSONPb{
				MarshalOptions:   protojson.MarshalOptions{UseProtoNames: true},
				UnmarshalOptions: protojson.UnmarshalOptions{DiscardUnknown: true},
			},
		}))}
	for _, register := range []func(context.Context, *gw.ServeMux, *grpc.ClientConn) error{
		kvgw.RegisterKVHandler, kvgw.RegisterWatchHandler, kvgw.RegisterLeaseHandler,
		kvgw.RegisterClusterHandler, kvgw.RegisterMaintenanceHandler, kvgw.RegisterAuthHandler,
		lgw.RegisterLockHandler, egw.RegisterElectionHandler,
	} {
		if err := register(context.Background(), g.mux, conn); err != nil {
			conn.Close()
			return nil, err
		}
	}
	s.background.Go(func() { s.grpc.Serve(pipe) })
	return g, nil
}

func (g *gateway) close() {
	if g.conn != nil {
		g.conn.Close()
		g.pipe.Close()
	}
}

package server

import (
	"context"
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
)

// newHTTP makes the HTTP server: everything that is not gRPC.
func (s *Server) newHTTP() *http.Server {
	var process prometheus.Gatherer
	if !s.cfg.NoProcessMetrics {
		process = prometheus.DefaultGatherer
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer{s.cfg.Registry, process}, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /version", s.serveVersion)
	s.handleHealth(mux)
	mux.HandleFunc("GET /braid/status", s.serveStatusJSON)
	mux.HandleFunc("GET /{$}", s.serveStatusPage)
	if s.gateway.mux != nil {
		mux.Handle("/v3/", http.MaxBytesHandler(s.gateway.mux, int64(2*s.cfg.MaxRequestBytes+frameOverhead))) // base64
	}
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: sniffTimeout, IdleTimeout: 5 * time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong is theirs to see
	}
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
	_, _ = w.Write(body) // the client's loss
}

// gateway offers the services as JSON. It is a client of the gRPC server by way of memory.
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
	g := &gateway{conn: conn, pipe: pipe, mux: gw.NewServeMux(gw.WithMarshalerOption(gw.MIMEWildcard, &gw.HTTPBodyMarshaler{
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

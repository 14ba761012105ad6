package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// kvTarget is one connection, by gRPC or by HTTP.
type kvTarget struct {
	conn   *grpc.ClientConn
	kv     etcdserverpb.KVClient
	leases etcdserverpb.LeaseClient
	http   *http.Client
	base   string // URL without a path, for HTTP
}

func (t *kvTarget) close() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
	if t.http != nil {
		t.http.CloseIdleConnections()
	}
}

// address is the host and port of an endpoint, which may be a URL.
func address(endpoint string) (string, error) {
	host := endpoint
	if strings.Contains(endpoint, "://") {
		u, err := url.Parse(endpoint)
		if err != nil {
			return "", fmt.Errorf("endpoint %q: %w", endpoint, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" {
			return "", fmt.Errorf("endpoint %q: must be http://, https:// or host:port", endpoint)
		}
		host = u.Host
	}
	if h, port, ok := strings.Cut(host, ":"); !ok || h == "" || port == "" {
		return "", fmt.Errorf("endpoint %q: must have a host and a port", endpoint)
	}
	return host, nil
}

// secured returns the TLS configuration for an endpoint; nil: plain. An https:// endpoint never gets a request in
// clear text.
func secured(endpoint string, secure *tls.Config) *tls.Config {
	if secure == nil && strings.HasPrefix(endpoint, "https://") {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return secure
}

func connect(endpoint string, secure *tls.Config, further ...grpc.DialOption) (*grpc.ClientConn, error) {
	addr, err := address(endpoint)
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if secure := secured(endpoint, secure); secure != nil {
		creds = credentials.NewTLS(secure)
	}
	// Fixed windows save both sides the pings that otherwise estimate them.
	const window = 1 << 20
	return grpc.NewClient("passthrough:///"+addr, append([]grpc.DialOption{grpc.WithTransportCredentials(creds),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessage+maxKey), grpc.MaxCallSendMsgSize(maxMessage+maxKey))}, further...)...)
}

// kvCluster is the cluster as its endpoints report it.
type kvCluster struct {
	endpoints []string
	leader    int // the index of the leader's endpoint; -1 none
	members   int
	version   string
	// readMetrics reads the running totals of all endpoints.
	readMetrics func(*kvCluster, *tls.Config) serverMetrics
}

// probe requests the status of every endpoint. All must answer, and know a leader.
func probe(ctx context.Context, api string, endpoints []string, secure *tls.Config) (*kvCluster, error) {
	switch {
	case len(endpoints) == 0:
		return nil, errors.New("no endpoints")
	case api == MapAPI:
		return probeMap(ctx, endpoints, secure)
	}
	c := &kvCluster{endpoints: endpoints, leader: -1, readMetrics: etcdMetrics}
	for i, e := range endpoints {
		s, members, err := status(ctx, e, secure)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s is unreachable or not an etcd v3 server: %w", e, err)
		}
		if s.GetLeader() == 0 {
			return nil, fmt.Errorf("endpoint %s knows no leader: its cluster has no quorum", e)
		}
		if s.GetLeader() == s.GetHeader().GetMemberId() {
			c.leader = i
		}
		c.version = s.GetVersion()
		c.members = max(c.members, members)
	}
	return c, nil
}

// status requests the status of one endpoint and the number of members.
func status(ctx context.Context, endpoint string, secure *tls.Config) (*etcdserverpb.StatusResponse, int, error) {
	conn, err := connect(endpoint, secure)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return nil, 0, err
	}
	list, err := etcdserverpb.NewClusterClient(conn).MemberList(ctx, &etcdserverpb.MemberListRequest{})
	if err != nil {
		return s, 0, nil //nolint:nilerr // a server without the Cluster service can be loaded too
	}
	return s, len(list.GetMembers()), nil
}

// open begins to connect to the endpoints.
func (r *kvRun) open(endpoints []string) error {
	if len(endpoints) == 0 {
		return errors.New("no endpoints")
	}
	for i := range r.Conns {
		t, err := newTarget(r.API, endpoints[i%len(endpoints)], r.TLS)
		if err != nil {
			return err
		}
		r.targets = append(r.targets, t)
	}
	return nil
}

// dial opens the connections and waits until each works.
func (r *kvRun) dial(ctx context.Context, endpoints []string) error {
	if err := r.open(endpoints); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	for i, t := range r.targets {
		if t.conn == nil {
			continue // HTTP connects with the first request
		}
		if err := ready(ctx, t.conn); err != nil {
			return fmt.Errorf("connection %d of %d to %s: %w", i+1, r.Conns, endpoints[i%len(endpoints)], err)
		}
	}
	return nil
}

// newTarget begins to connect to an endpoint.
func newTarget(api, endpoint string, secure *tls.Config) (*kvTarget, error) {
	if api == MapAPI {
		return newHTTPTarget(endpoint, secure)
	}
	conn, err := connect(endpoint, secure)
	if err != nil {
		return nil, err
	}
	conn.Connect()
	return &kvTarget{conn: conn, kv: etcdserverpb.NewKVClient(conn), leases: etcdserverpb.NewLeaseClient(conn)}, nil
}

// ready waits until a connection works.
func ready(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		s := conn.GetState()
		if s.String() == "READY" {
			return nil
		}
		if !conn.WaitForStateChange(ctx, s) {
			return fmt.Errorf("not established in time: %w", ctx.Err())
		}
	}
}

func (r *kvRun) hangUp() {
	for _, t := range r.targets {
		t.close()
	}
}

// serverMetrics are running totals of servers with etcd's metric names.
type serverMetrics struct {
	leaderEgress float64 // bytes to other members
	fsyncs       float64 // of all members
}

// etcdMetrics reads the metrics of all endpoints; one that a server does not report is 0.
func etcdMetrics(c *kvCluster, secure *tls.Config) (m serverMetrics) {
	transport := &http.Transport{TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: dialTimeout, Transport: transport}
	for i, e := range c.endpoints {
		scheme := "http://"
		if secured(e, secure) != nil {
			scheme = "https://"
		}
		addr, err := address(e)
		if err != nil {
			continue
		}
		resp, err := client.Get(scheme + addr + "/metrics")
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			name, value := metricLine(lines.Text())
			switch {
			case name == "etcd_disk_wal_fsync_duration_seconds_count":
				m.fsyncs += value
			case name == "etcd_network_peer_sent_bytes_total" && i == c.leader:
				m.leaderEgress += value
			}
		}
		_ = resp.Body.Close()
	}
	return m
}

// metricLine parses a line of Prometheus' text format: the name without labels.
func metricLine(line string) (name string, value float64) {
	if strings.HasPrefix(line, "#") {
		return "", 0
	}
	f := strings.Fields(line)
	if len(f) < 2 {
		return "", 0
	}
	name, _, _ = strings.Cut(line, "{")
	name, _, _ = strings.Cut(name, " ")
	value, _ = strconv.ParseFloat(f[len(f)-1], 64)
	return name, value
}

// awaitServers waits until every endpoint answers and knows a leader. failed may return a reason to stop.
func awaitServers(ctx context.Context, api string, endpoints []string, failed func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := probe(ctx, api, endpoints, nil)
		if err == nil {
			return nil
		}
		if ferr := failed(); ferr != nil {
			return ferr
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the servers were not ready after %v: %w", startTimeout, err)
		}
	}
}

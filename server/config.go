package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/server/internal/metrics"
)

// Config starts a [Server]. Optional fields may be zero, which means their default.
type Config struct {
	// Node opens the log. Its Answer and Logger are set by Start.
	Node braid.Options
	// Store opens the state machine. Its ids, Bodies, Repairable, Client and OnFatal are set by Start.
	Store store.Options

	// Name and AdvertiseClientURLs are published in the member list, and so is Zone, unless it is "".
	Name                string
	Zone                string
	AdvertiseClientURLs []string
	// ClusterToken makes ids of members that are added; see [JoinedMemberID].
	ClusterToken string

	// ListenClient are where clients connect: gRPC, JSON, health and metrics on the same
	// port. The server closes them.
	ListenClient []net.Listener
	// ListenPlain are like ListenClient, and plain although there is TLS. With a listener that is in both, the first byte
	// of a connection tells which it is. There is at least one listener for clients.
	ListenPlain []net.Listener
	// ListenMetrics serve health and metrics only, as HTTP on what the listeners accept. The server closes them.
	ListenMetrics []net.Listener
	// TLS of ListenClient; nil: plain. Its GetCertificate, or GetConfigForClient, may
	// give a new certificate to every connection.
	TLS *tls.Config

	// LanePrefixes select puts that may use a lane although their clients do not ask for it. The longest one that fits a
	// key counts.
	LanePrefixes []LanePrefix

	// MaxConnections is how many connections clients may have at a time, on all of ListenClient
	// together. Others wait. The default leaves some of the process's descriptors to the member: 150 or
	// an eighth, but at most three quarters of them. A few more are for ListenMetrics.
	MaxConnections int
	// MaxConnectionsPerClient is how many of them may come from one address of IPv4, or one network of 64 bits of IPv6;
	// further ones are closed. 0: no limit.
	MaxConnectionsPerClient int
	// MaxRequestsPerClient is how many calls and streams from one such address may be in progress; further ones are
	// refused, and a retry is safe. Default 32768, half of those of all clients.
	MaxRequestsPerClient int
	// UserRates and PrefixRates bound the requests a second that this member takes. Further ones are refused with
	// codes.ResourceExhausted, and a retry is safe: details of the status say when.
	UserRates, PrefixRates []RateLimit
	MaxRequestBytes        int           // of an encoded request; default 32 MiB
	MaxTxnOps              int           // operations of a transaction; default 128
	MaxConcurrentStreams   uint32        // calls in progress on a connection; default [DefaultConcurrentStreams]
	MaxLearners            int           // default 1
	LaxReconfig            bool          // leave out etcd's conditions for changes of members; the log's stay
	RequestTimeout         time.Duration // default 5 s and two election timeouts
	// WatchProgressInterval is how often a watch that asked for it and had no events is sent the revision; default 10
	// min, at least 100 ms.
	WatchProgressInterval time.Duration
	// SnapshotStallTimeout is how long a client may read nothing of a snapshot that it is sent; default 30 s. Its stream
	// ends after at most twice that time.
	SnapshotStallTimeout time.Duration
	AutoCompaction       AutoCompaction
	// CompactHashCheckTime is how often members compare the hashes that they computed at
	// compactions. CorruptCheckTime is how often they compare new hashes of the whole history. 0:
	// never.
	CompactHashCheckTime, CorruptCheckTime time.Duration
	// Features are those of etcd that its metrics list.
	Features []Feature
	// ExtensiveMetrics measures how long each gRPC call takes, by method.
	ExtensiveMetrics bool
	// DefragmentBytes is how much defragmentation has to free that the server does it after Start; 0: it does not.
	DefragmentBytes int64
	// WarnRequestDuration is the time above which a request is logged, one a second at most. Default 300 ms.
	WarnRequestDuration time.Duration
	// Tracing sends spans of calls to a collector; nil: it does not.
	Tracing *Tracing
	// NoGateway leaves out the services as JSON under /v3/.
	NoGateway bool
	// Hosts are the names by which requests over plain HTTP may address this server, against rebinding of DNS names.
	// Origins are the sites whose pages may read answers over HTTP, as https://example.com. Both: nil or "*": all.
	Hosts, Origins []string
	// Profiling serves the profiles of package net/http/pprof under /debug/pprof/.
	Profiling bool
	// Keepalive is how the gRPC server treats connections that are silent.
	Keepalive Keepalive

	Logger *slog.Logger // default slog.Default()
	// Registry gets this server's metrics; default one of its own. /metrics serves it and, unless NoProcessMetrics, the
	// process's default registry, where etcd's packages keep theirs.
	Registry         *prometheus.Registry
	NoProcessMetrics bool

	// ownExtension: Store.Leases.Extension was given, and does not follow the election timeout.
	ownExtension bool
	// largeByPlacement: Store.LargeValueBytes was not given, and follows the placement.
	largeByPlacement   bool
	metricsConnections int // of ListenMetrics at a time
	// earlyFor is shortened by tests; default [earlyFor].
	earlyFor time.Duration
	// openLog is replaced by tests; default [braid.Open]. checkDir reports why it would refuse what is in Node.Dir.
	openLog  func(braid.Options, braid.DurableStateMachine) (Log, error)
	checkDir func(braid.Options) error
}

// Keepalive are the times of pings on connections of gRPC. Zero values are the defaults.
type Keepalive struct {
	MinTime  time.Duration // between pings of a client; one that pings more often is cut off; default 5 s
	Interval time.Duration // after which a silent client is pinged; default 2 h
	Timeout  time.Duration // for its answer; default 20 s
}

// Feature is a feature of etcd that can be turned on and off there. Stage is ALPHA, BETA or "".
type Feature = metrics.Feature

// DefaultConcurrentStreams is how many calls may be in progress on a client's connection, streams of watches among
// them. Clients keep further ones back.
const DefaultConcurrentStreams = 4096

// largeWholeBytes is the size from which on a value is large if members keep bodies whole. A body
// is synced before the entry that names it. For a single client that costs as much as it saves in
// the database at about this size (BenchmarkRealPut). Fragments pay from the store's smaller
// default on.
const largeWholeBytes = 64 << 10

// complete fills in the defaults.
func (c *Config) complete() error {
	if len(c.ListenClient)+len(c.ListenPlain) == 0 {
		return errors.New("server: no address to serve clients on")
	}
	clients, metrics := shareConnections()
	c.MaxConnections = cmp.Or(c.MaxConnections, clients)
	c.metricsConnections = metrics
	c.MaxRequestsPerClient = cmp.Or(c.MaxRequestsPerClient, maxCalls/2)
	c.MaxTxnOps = cmp.Or(c.MaxTxnOps, 128)
	c.MaxLearners = cmp.Or(c.MaxLearners, 1)
	c.completeWire()
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second+2*c.electionTimeout())
	c.WarnRequestDuration = cmp.Or(c.WarnRequestDuration, 300*time.Millisecond)
	c.WatchProgressInterval = max(cmp.Or(c.WatchProgressInterval, 10*time.Minute), 100*time.Millisecond)
	c.SnapshotStallTimeout = cmp.Or(c.SnapshotStallTimeout, 30*time.Second)
	c.Registry = cmp.Or(c.Registry, prometheus.NewRegistry())
	c.Node.Logger = cmp.Or(c.Node.Logger, c.Logger)
	if min(c.MaxConnections, c.MaxConnectionsPerClient, c.MaxRequestsPerClient, c.MaxRequestBytes, c.MaxTxnOps,
		c.MaxLearners) < 0 || c.RequestTimeout < 0 {
		return errors.New("server: limits must not be negative")
	}
	if err := c.AutoCompaction.check(); err != nil {
		return err
	}
	c.checkDir = func(braid.Options) error { return nil }
	if c.openLog == nil {
		c.checkDir = braid.Options.CheckDir
		c.openLog = func(o braid.Options, sm braid.DurableStateMachine) (Log, error) { return braid.Open(o, sm) }
	}
	c.Store.Logger = cmp.Or(c.Store.Logger, ZapLogger(c.Logger))
	c.Node.Members = slices.Clone(c.Node.Members) // opening the log sorts them
	c.Store.ClusterID, c.Store.MemberID = c.Node.Cluster, uint64(c.Node.Self)
	c.largeByPlacement = c.Store.LargeValueBytes == 0
	if c.largeByPlacement && !c.Node.Coded() {
		c.Store.LargeValueBytes = largeWholeBytes
	}
	c.Store.ReserveBytes = cmp.Or(c.Store.ReserveBytes, store.SpaceFor(c.MaxRequestBytes))
	c.ownExtension = c.Store.Leases.Extension != 0
	c.Store.Leases.Extension = cmp.Or(c.Store.Leases.Extension, c.electionTimeout())
	return nil
}

// completeWire sets the defaults that [Config.wireOptions] needs.
func (c *Config) completeWire() {
	c.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, 32<<20)
	c.MaxConcurrentStreams = cmp.Or(c.MaxConcurrentStreams, DefaultConcurrentStreams)
	k := &c.Keepalive
	*k = Keepalive{cmp.Or(k.MinTime, 5*time.Second), cmp.Or(k.Interval, 2*time.Hour), cmp.Or(k.Timeout, 20*time.Second)}
}

// largestMessage returns the size, in bytes, of the largest message that gRPC accepts.
func (c *Config) largestMessage() int {
	return min(c.MaxRequestBytes, math.MaxInt32-frameOverhead) + frameOverhead
}

// electionTimeout is that of the options, with which the member is started.
func (c *Config) electionTimeout() time.Duration { return cmp.Or(c.Node.ElectionTimeout, time.Second) }

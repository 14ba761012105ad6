package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/server"
)

// The parts of a member's data directory.
const (
	logDir   = "replica"
	storeDir = "store"
)

// serverConfig translates settings for the server. It makes certificates if it is to, and listens for clients.
func serverConfig(ctx context.Context, s *settings.Settings, logger *slog.Logger) (server.Config, error) {
	none, etcds := server.Config{}, server.ZapLogger(logger)
	lanes, users, prefixes, err := perKey(s) // before anything is changed
	if err != nil {
		return none, err
	}
	if err := errors.Join(refuseEtcdData(s.DataDir), refuseForeign(s.DataDir, s.WALDir)); err != nil {
		return none, err
	}
	if err := placeLog(s.DataDir, s.WALDir); err != nil {
		return none, err
	}
	if err := s.MakeCertificates(etcds); err != nil {
		return none, err
	}
	clientTLS, err := s.ClientTLS.Server()
	if err != nil {
		return none, fmt.Errorf("certificate for clients: %w", err)
	}
	peerTLS, err := s.PeerTLS.Mutual()
	if err != nil {
		return none, fmt.Errorf("certificate for members: %w", err)
	}
	alone, err := forceNew(ctx, s, logger)
	if err != nil {
		return none, err
	}
	j := &joiner{s: s, peerTLS: peerTLS, clientTLS: clientTLS, alone: alone}
	who, err := identify(ctx, s, &discoverer{s: s, dns: net.DefaultResolver, logger: etcds}, j)
	if err != nil {
		return none, err
	}
	period, revisions, err := s.Retention()
	if err != nil {
		return none, err
	}
	c := server.Config{
		AutoCompaction: server.AutoCompaction{Period: period, Revisions: revisions},
		Node:           nodeOptions(s, who, peerTLS),
		Store:          storeOptions(s),
		Name:           s.Name, Zone: s.Zone, AdvertiseClientURLs: s.AdvertiseClient, ClusterToken: s.Token, TLS: clientTLS,
		MaxRequestBytes: int(s.MaxRequestBytes), MaxTxnOps: int(s.MaxTxnOps), MaxConcurrentStreams: s.MaxConcurrentStreams,
		MaxLearners: s.MaxLearners, LaxReconfig: !s.StrictReconfig,
		LanePrefixes: lanes, UserRates: users, PrefixRates: prefixes, MaxRequestsPerClient: s.MaxRequestsPerClient,
		MaxConnections: s.MaxConnections, MaxConnectionsPerClient: s.MaxConnectionsPerClient,
		CompactHashCheckTime: max(0, s.CompactHashCheckTime), CorruptCheckTime: max(0, s.CorruptCheckTime),
		WatchProgressInterval: s.WatchProgressInterval, NoGateway: !s.EnableGRPCGateway, Logger: logger,
		DefragmentBytes: int64(s.DefragmentMiB) << 20,
		Hosts:           s.Hosts, Origins: s.Origins, Profiling: s.Profiling,
		Features: features(), ExtensiveMetrics: s.ExtensiveMetrics(), WarnRequestDuration: s.WarnRequest,
		Tracing:   tracing(s),
		Keepalive: server.Keepalive{MinTime: s.PingMinTime, Interval: s.PingInterval, Timeout: s.PingTimeout},
	}
	if err := c.Node.CheckDir(); err != nil {
		return none, fmt.Errorf("member %s: %w", s.Name, withProtocol(err))
	}
	err = listen(&c, s, clientTLS)
	return c, err
}

// tracing is which spans are sent where; nil: none are.
func tracing(s *settings.Settings) *server.Tracing {
	if !s.Tracing {
		return nil
	}
	return &server.Tracing{Address: s.TracingAddress, Service: s.TracingService, Instance: s.TracingInstance,
		PerMillion: s.TracingRate}
}

// perKey translates what depends on keys and users: which puts may use a lane, and rates. The error is a usageError.
func perKey(s *settings.Settings) (lanes []server.LanePrefix, users, prefixes []server.RateLimit, err error) {
	if lanes, err = parseAll(s.LanePrefixes, server.ParseLanePrefix); err != nil {
		return nil, nil, nil, err
	}
	if users, err = parseAll(s.UserRates, server.ParseRateLimit); err != nil {
		return nil, nil, nil, err
	}
	prefixes, err = parseAll(s.PrefixRates, server.ParseRateLimit)
	return lanes, users, prefixes, err
}

// listen opens the listeners of clients and of metrics, and those of members if other processes may share their ports.
func listen(c *server.Config, s *settings.Settings, clientTLS *tls.Config) error {
	clients := settings.Addresses(slices.Concat(s.ListenClient, s.ListenHTTP))
	listeners, err := listenAll(clients, s.ReusePort)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	for i, l := range listeners {
		if clients[i].TLS || clientTLS == nil {
			c.ListenClient = append(c.ListenClient, l)
		}
		if clients[i].Plain && clientTLS != nil {
			c.ListenPlain = append(c.ListenPlain, l)
		}
	}
	metrics := settings.Addresses(s.ListenMetrics)
	if c.ListenMetrics, err = listenAll(metrics, s.ReusePort); err != nil {
		closeListeners(listeners)
		return fmt.Errorf("listen for metrics: %w", err)
	}
	for i, l := range c.ListenMetrics {
		if metrics[i].TLS {
			http1 := clientTLS.Clone()
			http1.NextProtos = nil
			c.ListenMetrics[i] = tls.NewListener(l, http1)
		}
	}
	if !s.ReusePort {
		return nil // the log listens
	}
	if c.Node.Listeners, err = listenAll(settings.Addresses(s.ListenPeer), true); err != nil {
		closeListeners(slices.Concat(listeners, c.ListenMetrics))
		return fmt.Errorf("listen for members: %w", err)
	}
	c.Node.Listen = nil
	return nil
}

// storeOptions translates settings for the state machine.
func storeOptions(s *settings.Settings) store.Options {
	return store.Options{
		Dir: filepath.Join(s.DataDir, storeDir), QuotaBytes: s.QuotaBytes,
		AuthToken: s.AuthToken, AuthTokenTTL: time.Duration(s.AuthTokenTTL) * time.Second, BcryptCost: int(s.BcryptCost),
		ClientCertAuth: s.ClientTLS.ClientCertAuth, LargeValueBytes: s.LargeValueBytes,
		WarnApplyDuration: s.WarnApply, BackendBatchInterval: s.BatchInterval, BackendBatchLimit: s.BatchLimit,
		LockMemory: s.LockMemory, ArrayFreelist: s.ArrayFreelist(), CompactionBatchLimit: s.CompactionLimit,
		CompactionSleepInterval: s.CompactionPause, NoSync: s.UnsafeNoFsync,
	}
}

// features are what metrics say of etcd's features.
func features() (all []server.Feature) {
	for _, f := range settings.Features() {
		all = append(all, server.Feature(f))
	}
	return all
}

// parseAll parses the values of a flag that may be repeated.
func parseAll[T any](all []string, parse func(string) (T, error)) (out []T, err error) {
	for _, text := range all {
		one, err := parse(text)
		if err != nil {
			return nil, usageError{err}
		}
		out = append(out, one)
	}
	return out, nil
}

func nodeOptions(s *settings.Settings, who identity, peerTLS *tls.Config) braid.Options {
	v := s.Values
	if who.begun > 0 && s.Merges() {
		v = common.Instances.Set(v, who.begun)
	}
	o := braid.Options{
		Self: who.self, Cluster: who.cluster, Members: who.members, Join: who.join,
		PeerURLs: s.AdvertisePeer,
		Dir:      filepath.Join(s.DataDir, logDir), Listen: settings.Hosts(s.ListenPeer),
		TLS:       braid.TLS{Config: peerTLS, ByURL: s.PeerTLSByURL, Binds: s.PeerTLSBinds},
		Protocol:  braid.Named(s.NamedProtocol(), common.Time.Except(v).Texts()...),
		Heartbeat: common.Heartbeat.In(v), ElectionTimeout: common.ElectionTimeout.In(v), LeaseReads: common.LeaseReads.In(v),
		Limits: braid.Limits{SnapshotBytes: s.SnapshotBytes, KeepLogBytes: s.KeepLogBytes, BodyCacheBytes: s.BodyCacheBytes,
			ScrubBytesPerSecond: s.ScrubRate}, Experiment: braid.Experiment{Net: s.Net},
	}
	if s.UnsafeNoFsync {
		o.FS = vfs.Unsynced(vfs.OS)
	}
	if s.ScrubRate == 0 {
		o.Limits.ScrubBytesPerSecond = -1 // where 0 is the default
	}
	// The limit of commands stays unless requests, which the server counts as the commands that they make, need more.
	if usual := 32 << 20; int(s.MaxRequestBytes) > usual {
		o.Limits.CommandBytes = int(s.MaxRequestBytes)
	}
	return o
}

// refuseEtcdData refuses a directory with a member of etcd.
func refuseEtcdData(dir string) error {
	_, err := os.Stat(filepath.Join(dir, "member", "snap"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("data directory %s belongs to etcd: take a snapshot of it with etcdctl, see "+
			"docs/using/operations.md", dir)
	}
	return err
}

// unowned are names that an empty disk may have, and the files that common charts for etcd write next to a member's
// data before its first start.
var unowned = []string{"lost+found", ".snapshot", "member_id", "new_member_envs"}

// refuseForeign refuses a directory with other contents and no member. The directory of --wal-dir may be in it.
func refuseForeign(dir, walDir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, own := range []string{filepath.Join(logDir, "member.json"), filepath.Join(storeDir, "db")} {
		if _, err := os.Stat(filepath.Join(dir, own)); err == nil {
			return nil
		}
	}
	for _, e := range entries {
		// Those of an interrupted first start, and of a launcher that did not start any member.
		own := slices.Contains([]string{logDir, storeDir, settings.CertificatesDir, discoveredFile, forcedFile,
			forceWork, forceBefore}, e.Name()) ||
			slices.Contains(launch.LockFiles, e.Name()) || walDir != "" && inside(filepath.Join(dir, e.Name()), walDir)
		if !own && !slices.Contains(unowned, e.Name()) {
			return fmt.Errorf("data directory %s is not empty and holds no member of braid (it has %q): choose another "+
				"--data-dir", dir, e.Name())
		}
	}
	return nil
}

// identity is this member's identity, and the members that it knows.
type identity struct {
	self    braid.MemberID
	cluster uint64
	members []braid.Member
	join    bool
	// begun is the number of instances with which a running cluster began; 0: the flag's.
	begun int
	// told is the answer of a member of the running cluster on its address for members.
	told braid.Running
}

// identify finds the member's ids: in its data directory, from a running cluster that it
// joins, or from the initial cluster.
func identify(ctx context.Context, s *settings.Settings, d *discoverer, j *joiner) (identity, error) {
	kept, found, err := readIdentity(s.DataDir)
	if a := j.alone; err == nil && a != nil && (!found || kept.self == a.self && kept.cluster == a.cluster) {
		return *a, nil
	}
	if err == nil {
		err = d.run(ctx, found)
	}
	if err != nil {
		return identity{}, err
	}
	derived, err := derive(s)
	if err != nil {
		return identity{}, err
	}
	other := kept.self != derived.self || kept.cluster != derived.cluster // as before discovery was given
	if found && (s.InitialState == settings.StateExisting || joinedAs(s, kept) || s.Discovers() && other) {
		return j.rejoin(ctx, kept), nil
	}
	if found {
		return derived, sameIdentity(s, kept, derived)
	}
	if s.InitialState == settings.StateExisting {
		return j.find(ctx, 10*time.Second)
	}
	if err := s.Founding(); err != nil {
		return identity{}, usageError{err}
	}
	return derived, nil
}

// derive makes ids from the initial cluster: every member derives the same ones.
func derive(s *settings.Settings) (identity, error) {
	peers, err := s.Peers()
	if err != nil {
		return identity{}, err
	}
	who := identity{self: braid.MemberIDOf(s.InitialName, s.Token)}
	for _, p := range peers {
		who.members = append(who.members, braid.Member{ID: braid.MemberIDOf(p.Name, s.Token), Name: p.Name,
			PeerURLs: p.URLs, Zone: p.Zone})
	}
	who.cluster = braid.ClusterIDOf(who.members, s.Token)
	return who, nil
}

// readIdentity reads the owner of a directory.
func readIdentity(dir string) (who identity, found bool, err error) {
	file := filepath.Join(dir, logDir, "member.json")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return who, false, nil
	}
	if err != nil {
		return who, false, err
	}
	var content struct {
		Cluster uint64         `json:"cluster"`
		Member  braid.MemberID `json:"member"`
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return who, false, fmt.Errorf("%s is damaged: %w", file, err)
	}
	return identity{self: content.Member, cluster: content.Cluster}, true, nil
}

// sameIdentity reports a contradiction in terms of the flags.
func sameIdentity(s *settings.Settings, kept, derived identity) error {
	if i := slices.IndexFunc(derived.members, func(m braid.Member) bool {
		return m.ID == kept.self
	}); i >= 0 && kept.self != derived.self {
		return fmt.Errorf("data directory %s belongs to member %s, not to %s", s.DataDir, derived.members[i].Name, s.Name)
	}
	switch {
	case kept.self != derived.self:
		return fmt.Errorf("data directory %s belongs to member %s, which is neither %s nor another member of "+
			"--initial-cluster with token %q (a member that joined a running cluster starts with --initial-cluster-state "+
			"existing)",
			s.DataDir, kept.self, s.Name, s.Token)
	case kept.cluster != derived.cluster:
		return fmt.Errorf("data directory %s belongs to cluster %x, the flags describe cluster %x: give --initial-cluster "+
			"and --initial-cluster-zones as they were when the cluster was made, or --initial-cluster-state existing",
			s.DataDir, kept.cluster, derived.cluster)
	}
	return nil
}

func listenAll(addrs []settings.Address, shared bool) ([]net.Listener, error) {
	var out []net.Listener
	for _, a := range addrs {
		err := removeSocket(a)
		var l net.Listener
		if err == nil {
			l, err = ports.Listen(a.Network, a.Addr, shared)
		}
		if err != nil {
			closeListeners(out)
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// removeSocket removes the file that a process which was killed left at an address, as etcd does. It leaves files that
// are no sockets, and, unlike etcd, a socket to which a process still listens.
func removeSocket(a settings.Address) error {
	if a.Network != "unix" {
		return nil
	}
	info, err := os.Lstat(a.Addr)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return nil // to listen tells what is wrong
	}
	conn, err := net.DialTimeout(a.Network, a.Addr, time.Second)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			conn.Close()
		}
		return nil
	}
	return os.Remove(a.Addr)
}

func closeListeners(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

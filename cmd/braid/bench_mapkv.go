package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/mapkv"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/transport/netspec"
)

// mapkvFlags are the flags of braid bench mapkv-serve, named as etcd's.
type mapkvFlags struct {
	name, dir, client, peer string
	cluster, token          string
	shape                   bench.Shape
	net                     string
	bodyBytes               int
	bare                    bool
	leaseReads              bool
	advertised              [2]string // same as the URLs listened on
}

// newMapKVCommand returns the command that runs a member of the small key-value service, with which protocols are
// measured: bench kv starts it.
func newMapKVCommand() *cobra.Command {
	var f mapkvFlags
	cmd := &cobra.Command{
		Use: "mapkv-serve", Short: "run a member of a small key-value service over the log, for benchmarks", Hidden: true,
		Args: cobra.NoArgs,
		Long: `Runs a member of a map with HTTP in front of it, over the log: GET, PUT and DELETE
/kv/KEY (with ?stale for a read of this member's current state), POST /kv/KEY to append
to a value, POST /append and GET /status. "braid bench kv --protocol raft-map" starts a cluster of it and loads it.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "default", "name of the member")
	fl.StringVar(&f.dir, "data-dir", "", "data directory")
	fl.StringVar(&f.client, "listen-client-urls", "", "URL for clients")
	fl.StringVar(&f.advertised[0], "advertise-client-urls", "", "same as --listen-client-urls")
	fl.StringVar(&f.peer, "listen-peer-urls", "",
		"URL for members, or a list with commas, one for each network card")
	fl.StringVar(&f.advertised[1], "initial-advertise-peer-urls", "", "same as --listen-peer-urls")
	fl.StringVar(&f.cluster, "initial-cluster", "",
		"members, as name=URL; several entries for several network cards")
	fl.StringVar(&f.token, "initial-cluster-token", "mapkv", "token of the cluster")
	fl.StringVar(&f.shape.Protocol, "protocol", "raft", "protocol of the log: "+strings.Join(braid.Protocols(), ", "))
	settings.CommonFlags(fl, settings.Layout, &f.shape.Values)
	settings.OwnFlags(fl, registry.Settings(), registry.Having, true, &f.shape.Values)
	fl.IntVar(&f.bodyBytes, "body-bytes", mapkv.DefaultBodyBytes,
		"size from which on values are kept outside of the log, in fragments if values are coded")
	fl.BoolVar(&f.bare, "bare", false, "answer at once, without a log, and store nothing: the cost of HTTP itself")
	fl.StringVar(&f.net, "net", "", netspec.Usage)
	fl.BoolVar(&f.leaseReads, "lease-reads", false, "answer reads without a round trip")
	for _, required := range []string{"data-dir", "listen-client-urls", "listen-peer-urls", "initial-cluster"} {
		_ = cmd.MarkFlagRequired(required) // fails only for a flag that does not exist
	}
	return cmd
}

func (f *mapkvFlags) run(cmd *cobra.Command) error {
	o, clients, err := f.options()
	if err != nil {
		return usageError{err}
	}
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	l, err := net.Listen("tcp", clients)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	if f.bare {
		return mapkv.ServeBare(cmd.Context(), l, o.Self, o.Members)
	}
	bodies := f.bodyBytes
	if registry.Find(f.shape.Protocol).Core.Judged.ByKey {
		bodies = -1 // such protocols have none
	}
	m, err := mapkv.Open(o, l, bodies)
	if err != nil {
		return err
	}
	err = m.Wait(cmd.Context())
	if cerr := m.Close(); err == nil {
		err = cerr
	}
	return err
}

// options returns the node's options, and the address for clients.
func (f *mapkvFlags) options() (o braid.Options, clients string, err error) {
	if f.bodyBytes < 1 {
		return o, "", fmt.Errorf("--body-bytes %d: must be at least 1", f.bodyBytes)
	}
	if clients, err = hostOf(f.client); err != nil {
		return o, "", fmt.Errorf("--listen-client-urls: %w", err)
	}
	var peers []string // one for each network card
	for part := range strings.SplitSeq(f.peer, ",") {
		peer, err := hostOf(part)
		if err != nil {
			return o, "", fmt.Errorf("--listen-peer-urls: %w", err)
		}
		peers = append(peers, peer)
	}
	if err := readNet(&f.net); err != nil {
		return o, "", err
	}
	o = braid.Options{Self: braid.MemberIDOf(f.name, f.token), Dir: f.dir, Listen: peers, LeaseReads: f.leaseReads,
		Experiment: braid.Experiment{Net: f.net}}
	if err := f.shape.Apply(&o); err != nil {
		return o, "", fmt.Errorf("--protocol: %w", err)
	}
	for part := range strings.SplitSeq(f.cluster, ",") {
		name, peer, ok := strings.Cut(part, "=")
		if !ok {
			return o, "", fmt.Errorf("--initial-cluster: %q must be name=URL", part)
		}
		if _, err := hostOf(peer); err != nil {
			return o, "", fmt.Errorf("--initial-cluster: %w", err)
		}
		id := braid.MemberIDOf(name, f.token)
		if i := slices.IndexFunc(o.Members, func(m braid.Member) bool { return m.ID == id }); i >= 0 {
			o.Members[i].PeerURLs = append(o.Members[i].PeerURLs, peer)
			continue
		}
		o.Members = append(o.Members, braid.Member{ID: id, Name: name, PeerURLs: []string{peer}})
	}
	o.Cluster = braid.ClusterIDOf(o.Members, f.token)
	return o, clients, nil
}

// hostOf returns the address of an http URL.
func hostOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" || u.Port() == "" {
		return "", fmt.Errorf("%q must be http://HOST:PORT", text)
	}
	return u.Host, nil
}

package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/mapkv"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/transport/netspec"
)

// mapkvFlags are the flags of braid bench mapkv-serve.
type mapkvFlags struct {
	benchMemberFlags
	shape      bench.Shape
	net        string
	bodyBytes  int
	bare       bool
	leaseReads bool
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
	f.register(cmd)
	fl.StringVar(&f.shape.Protocol, "protocol", "raft", "protocol of the log: "+strings.Join(braid.Protocols(), ", "))
	settings.CommonFlags(fl, settings.Layout, &f.shape.Values)
	settings.OwnFlags(fl, registry.Settings(), registry.Having, true, &f.shape.Values)
	fl.IntVar(&f.bodyBytes, "body-bytes", mapkv.DefaultBodyBytes,
		"size from which on values are kept outside of the log, in fragments if values are coded")
	fl.BoolVar(&f.bare, "bare", false, "answer at once, without a log, and store nothing: the cost of HTTP itself")
	fl.StringVar(&f.net, "net", "", netspec.Usage)
	fl.BoolVar(&f.leaseReads, "lease-reads", false, "answer reads without a round trip")
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
	if o, clients, err = f.member(); err != nil {
		return o, "", err
	}
	if err := readNet(&f.net); err != nil {
		return o, "", err
	}
	o.LeaseReads, o.Experiment.Net = f.leaseReads, f.net
	if err := f.shape.Apply(&o); err != nil {
		return o, "", fmt.Errorf("--protocol: %w", err)
	}
	return o, clients, nil
}

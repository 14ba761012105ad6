package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/braidlog/braid/bench"
)

// libraries are what the log benchmark can run here; bench.Protocols has their names.
var libraries = map[string]bench.Opener{
	"etcd-raft":        openEtcdRaft,
	"etcd-raft-packed": openEtcdRaftPacked,
	"hashicorp-raft":   openHashicorp,
}

var errUsage = errors.New("usage: " + bench.RivalsProgram +
	" log | etcd-member FLAGS\nbraid bench log and braid bench kv start it")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs a subcommand until ctx ends.
func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "log":
		return bench.ServeRival(ctx, os.Stdin, os.Stdout, libraries)
	case len(args) > 1 && args[0] == "etcd-member":
		m, err := parseEtcdServer(args[1:])
		if err != nil {
			return err
		}
		return m.run(ctx)
	}
	return errUsage
}

// parseEtcdServer parses the flags of etcd that bench.StartServers passes.
func parseEtcdServer(args []string) (*etcdServer, error) {
	var m etcdServer
	fs := flag.NewFlagSet("etcd-member", flag.ContinueOnError)
	fs.StringVar(&m.Name, "name", "default", "name of the member")
	fs.StringVar(&m.DataDir, "data-dir", "", "data directory")
	fs.StringVar(&m.ClientURL, "listen-client-urls", "", "URL for clients")
	fs.String("advertise-client-urls", "", "same as --listen-client-urls")
	fs.StringVar(&m.PeerURL, "listen-peer-urls", "", "URL for members")
	fs.String("initial-advertise-peer-urls", "", "same as --listen-peer-urls")
	fs.StringVar(&m.InitialCluster, "initial-cluster", "", "members, as name=URL")
	fs.StringVar(&m.Token, "initial-cluster-token", "", "token of the cluster")
	fs.UintVar(&m.MaxRequestBytes, "max-request-bytes", 0, "largest request of a client (0: etcd's default)")
	fs.Int64Var(&m.QuotaBytes, "quota-backend-bytes", 0,
		"size of the database above which writes are refused (0: etcd's default)")
	fs.UintVar(&m.BcryptCost, "bcrypt-cost", 0, "cost of hashing a password (0: etcd's default)")
	return &m, fs.Parse(args)
}

package main

import (
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/server"
)

// benchLimitFlags are the flags of braid bench limit-serve.
type benchLimitFlags struct {
	benchMemberFlags
	config server.Config
	quota  int64 // nothing is stored
}

// newBenchLimitCommand returns the command that runs a process of the limit of a server: bench kv starts it.
func newBenchLimitCommand() *cobra.Command {
	var f benchLimitFlags
	cmd := &cobra.Command{
		Use: "limit-serve", Short: "answer puts and gets at once, without a log, for benchmarks", Hidden: true,
		Args: cobra.NoArgs,
		Long: `Answers puts and gets of etcd's API at once, with the options of the gRPC server of
"braid serve", without a log and a store. "braid bench kv --peer limit" starts as many of these
processes as a cluster has members.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.IntVar(&f.config.MaxRequestBytes, "max-request-bytes", 0, "largest request of a client (0: that of braid serve)")
	fl.Int64Var(&f.quota, "quota-backend-bytes", 0, "no effect")
	return cmd
}

func (f *benchLimitFlags) run(cmd *cobra.Command) error {
	node, clients, err := f.member()
	if err != nil {
		return usageError{err}
	}
	l, err := net.Listen("tcp", clients)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	f.config.Node, f.config.ListenClient = node, []net.Listener{l}
	return server.ServeBare(cmd.Context(), f.config)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newReshapeCommand) }

// reshapeFlags are the flags of braid reshape.
type reshapeFlags struct {
	endpoints []string
	instances int
	timeout   time.Duration
	tls       transport.TLSInfo
	user      string
}

func newReshapeCommand() *cobra.Command {
	var f reshapeFlags
	cmd := &cobra.Command{
		Use:   "reshape",
		Short: "Change the number of instances of a running cluster",
		Long: `reshape changes the number of instances from which a running cluster with --protocol niagara
merges its log, without a pause. The cluster records it; members' --instances is only for new
clusters. It returns when the change is active on the member that got the request.`,
		Example: `  braid reshape --instances 8
  braid reshape --endpoints 10.0.0.1:2379 --instances 2 --user root:secret`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			if err := f.run(cmd.Context()); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "the log is merged from %d instances\n", f.instances)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.endpoints, "endpoints", []string{"127.0.0.1:2379"}, "members' client addresses")
	fl.IntVar(&f.instances, "instances", 0, fmt.Sprintf("number of instances, 1 to %d", braid.MaxInstances))
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "time limit of the change")
	fl.StringVar(&f.tls.TrustedCAFile, "cacert", "", "file of the authority that signed the servers' certificates")
	fl.StringVar(&f.tls.CertFile, "cert", "", "file of the client's certificate")
	fl.StringVar(&f.tls.KeyFile, "key", "", "file of the client's key")
	fl.StringVar(&f.user, "user", "", "user:password, of a user with the role root, if auth is on")
	return cmd
}

func (f *reshapeFlags) check() error {
	switch {
	case len(f.endpoints) == 0:
		return errors.New("--endpoints is empty")
	case f.instances < 1 || f.instances > braid.MaxInstances:
		return fmt.Errorf("--instances %d: it is 1 to %d", f.instances, braid.MaxInstances)
	case f.timeout <= 0:
		return errors.New("--timeout must be positive")
	case f.user != "" && !strings.Contains(f.user, ":"):
		return errors.New("--user: it is NAME:PASSWORD")
	}
	return nil
}

func (f *reshapeFlags) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	config := clientv3.Config{Context: ctx, Endpoints: f.endpoints, Logger: zap.NewNop(), DialTimeout: f.timeout}
	config.Username, config.Password, _ = strings.Cut(f.user, ":")
	if !f.tls.Empty() || f.tls.TrustedCAFile != "" {
		tls, err := f.tls.ClientConfig()
		if err != nil {
			return err
		}
		config.TLS = tls
	}
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := server.Reshape(ctx, client.ActiveConnection(), f.instances); err != nil {
		return errors.New(status.Convert(err).Message())
	}
	return nil
}

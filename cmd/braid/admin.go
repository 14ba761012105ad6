package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// adminFlags are the flags of commands that ask a member for a change of its cluster.
type adminFlags struct {
	endpoints []string
	timeout   time.Duration
	tls       transport.TLSInfo
	user      string
}

func (f *adminFlags) flags(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.endpoints, "endpoints", []string{"127.0.0.1:2379"}, "members' client addresses")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "time limit of the change")
	fl.StringVar(&f.tls.TrustedCAFile, "cacert", "", "file of the authority that signed the servers' certificates")
	fl.StringVar(&f.tls.CertFile, "cert", "", "file of the client's certificate")
	fl.StringVar(&f.tls.KeyFile, "key", "", "file of the client's key")
	fl.StringVar(&f.user, "user", "", "user:password, of a user with the role root, if auth is on")
}

func (f *adminFlags) check() error {
	switch {
	case len(f.endpoints) == 0:
		return errors.New("--endpoints is empty")
	case f.timeout <= 0:
		return errors.New("--timeout must be positive")
	case f.user != "" && !strings.Contains(f.user, ":"):
		return errors.New("--user: it is NAME:PASSWORD")
	}
	return nil
}

// call calls a member. The error has a member's own text, unless none answered within the time limit.
func (f *adminFlags) call(ctx context.Context, ask func(context.Context, grpc.ClientConnInterface) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	config := clientv3.Config{Context: ctx, Endpoints: f.endpoints, Logger: zap.NewNop(), DialTimeout: f.timeout}
	config.Username, config.Password, _ = strings.Cut(f.user, ":")
	var err error
	if config.TLS, err = clientTLS(&f.tls); err != nil {
		return err
	}
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer client.Close()
	if err = ask(ctx, client.ActiveConnection()); errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		return fmt.Errorf("no answer within %v: a change may have been made, or be made later; it may be repeated",
			f.timeout)
	} else if err != nil {
		return errors.New(status.Convert(err).Message())
	}
	return nil
}

// clientTLS is the configuration of a client by its flags; nil: they name no files.
func clientTLS(files *transport.TLSInfo) (*tls.Config, error) {
	if files.Empty() && files.TrustedCAFile == "" {
		return nil, nil
	}
	return files.ClientConfig()
}

// parsePairs parses arguments of a form such as NAME=VALUE. A name may be there once.
func parsePairs(args []string, form string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not %s", arg, form)
		}
		if _, twice := pairs[name]; twice {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		pairs[name] = value
	}
	return pairs, nil
}

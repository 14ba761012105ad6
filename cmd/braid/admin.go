package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// adminFlags are the flags of commands that ask a member for a change of its cluster.
type adminFlags struct {
	endpoints []string
	timeout   time.Duration // what it is before flags is called is the default
	tls       transport.TLSInfo
	login     ctlLogin
	given     *pflag.FlagSet
	user      string // NAME:PASSWORD, once the flags are checked
	question  bool   // nothing is changed
}

func (f *adminFlags) flags(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.endpoints, "endpoints", []string{"127.0.0.1:2379"},
		"members' client addresses, asked in turn until one answers")
	fl.DurationVar(&f.timeout, "timeout", cmp.Or(f.timeout, 30*time.Second), "time limit of the change")
	fl.StringVar(&f.tls.TrustedCAFile, "cacert", "", "file of the authority that signed the servers' certificates")
	fl.StringVar(&f.tls.CertFile, "cert", "", "file of the client's certificate")
	fl.StringVar(&f.tls.KeyFile, "key", "", "file of the client's key")
	f.login.flags(fl, "user:password, of a user with the role root, if auth is on")
	f.given = fl
}

func (f *adminFlags) check() (err error) {
	if f.user, err = f.login.complete(f.given); err != nil {
		return err
	}
	switch {
	case len(f.endpoints) == 0:
		return errors.New("--endpoints is empty")
	case f.timeout <= 0:
		return errors.New("--timeout must be positive")
	}
	return nil
}

// memberAnswer bounds the wait for a connection with a member, and a connection's silence, while there are others.
const memberAnswer = 3 * time.Second

// call calls the members one after the other, until one answers for its cluster: a member that is down, stalled, about
// to stop, or without a leader does not. Every change may be repeated, also one whose answer was lost. The error has
// the last member's own text, unless none answered within the time limit.
func (f *adminFlags) call(ctx context.Context, ask func(context.Context, grpc.ClientConnInterface) error) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	config := clientv3.Config{Context: ctx, Logger: zap.NewNop(),
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: memberAnswer} // gRPC makes it ten seconds
	var err error
	if config.TLS, err = clientTLS(&f.tls); err != nil {
		return err
	}
	for i, endpoint := range f.endpoints {
		config.Endpoints = []string{endpoint}
		within := memberAnswer
		if i == len(f.endpoints)-1 {
			within = f.timeout
		}
		err = f.callMember(ctx, config, within, ask)
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && f.question:
		return fmt.Errorf("no answer within %v", f.timeout)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: a change may have been made, or be made later; it may be repeated",
			f.timeout)
	}
	return errors.New(status.Convert(err).Message())
}

// callMember calls the member of a configuration. The error is Unavailable if there is no connection within a time.
func (f *adminFlags) callMember(ctx context.Context, config clientv3.Config, within time.Duration,
	ask func(context.Context, grpc.ClientConnInterface) error,
) error {
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	defer client.Close()
	connected, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn := client.ActiveConnection()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure {
			break // a call says why
		}
		if !conn.WaitForStateChange(connected, state) {
			return status.Errorf(codes.Unavailable, "%s: no connection within %v", config.Endpoints[0], within)
		}
	}
	// The client could authenticate itself, but would wait for a member that is down until the whole time is over.
	if name, password, given := strings.Cut(f.user, ":"); given {
		q := &pb.AuthenticateRequest{Name: name, Password: password}
		switch r, err := pb.NewAuthClient(conn).Authenticate(ctx, q); {
		case err == nil:
			ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, r.Token)
		case status.Convert(err).Message() != rpctypes.ErrorDesc(rpctypes.ErrGRPCAuthNotEnabled):
			return err
		}
	}
	return ask(ctx, conn)
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

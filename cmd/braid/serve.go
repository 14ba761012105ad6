package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newServeCommand) }

// stopTimeout bounds the time for a member to close its files when it stops. Acknowledged commands are durable
// already.
const stopTimeout = 10 * time.Second

func newServeCommand() *cobra.Command {
	s := &settings.Settings{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one member of a cluster",
		Long: `serve runs one member until SIGINT or SIGTERM. Its flags have etcd's names. Settings that are not
on the command line come from --config-file (YAML, the flags' names as keys), then from
variables such as ETCD_NAME. Sizes are in bytes.

The data directory belongs to one member of one cluster, and to one protocol (raft and craft
count as one). A member that finds its data continues from there; --initial-cluster is only compared, and
--instances, which only a new cluster takes, is ignored.`,
		Example: `  # one member alone
  braid serve --name m1

  # the first of three
  braid serve --name m1 --initial-cluster-token shop \
    --listen-client-urls http://10.0.0.1:2379 --listen-peer-urls http://10.0.0.1:2380 \
    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380

  # one of five that keep fragments of large values (the same --protocol on all)
  braid serve --name m1 --protocol craft --large-value-bytes 65536 \
    --listen-client-urls http://10.0.0.1:2379 --listen-peer-urls http://10.0.0.1:2380 \
    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380,` +
			`m4=http://10.0.0.4:2380,m5=http://10.0.0.5:2380

  # the first of three with two network cards, and four instances distributed over them
  braid serve --name m1 --protocol niagara --instances 4 \
    --listen-client-urls http://10.0.0.1:2379 --listen-peer-urls http://10.0.0.1:2380,http://10.1.0.1:2380 \
    --initial-cluster m1=http://10.0.0.1:2380,m1=http://10.1.0.1:2380,` +
			`m2=http://10.0.0.2:2380,m2=http://10.1.0.2:2380,` +
			`m3=http://10.0.0.3:2380,m3=http://10.1.0.3:2380

  # a fourth, once "braid ctl member add m4 --peer-urls http://10.0.0.4:2380"
  braid serve --name m4 --initial-cluster-state existing --join http://10.0.0.1:2380 \
    --listen-client-urls http://10.0.0.4:2379 --listen-peer-urls http://10.0.0.4:2380`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(s.Load(cmd.Flags(), os.Environ()), readNet(&s.Net), whereIn(s.Net, s.Name)); err != nil {
				return usageError{err}
			}
			log, err := openLog(s, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer log.close()
			return serve(cmd.Context(), s, log)
		},
	}
	s.Flags(cmd.Flags())
	return cmd
}

// serve runs the member until ctx ends, its launcher ends, or it cannot continue.
func serve(ctx context.Context, s *settings.Settings, log io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	links := newestNet(stop)
	tune(s)
	logger := newLogger(s, log)
	for _, line := range s.Ignored() {
		logger.Warn(line)
	}
	if s.UnsafeNoFsync {
		logger.Warn("--unsafe-no-fsync: nothing is durable. If this machine or its power fails, acknowledged writes " +
			"are lost, and this member may not start again")
	}
	config, err := serverConfig(ctx, s, logger)
	if err != nil {
		return err
	}
	member, err := server.Start(config)
	if err != nil {
		return fmt.Errorf("member %s: %w", s.Name, withProtocol(ports.Explain(err)))
	}
	status := member.Status()
	running := len(status.Instances)
	logger.Info("serving clients", "name", s.Name, "id", member.ID().String(), "urls", s.ListenClient,
		"protocol", status.Protocol, "placement", status.Placement, "instances", running)
	if running != s.Instances() {
		logger.Info("--instances is what a new cluster begins with, this one goes on with its own", "flag", s.Instances(),
			"instances", running)
	}
	go tellInit(ctx, member.Joined(), logger)
	for {
		select {
		case net := <-links:
			if err := member.SetNet(net); err != nil {
				logger.Error("links are not emulated as the launcher wants", "net", net, "err", err)
			}
		case <-member.Done():
			return fmt.Errorf("member %s stopped: %w", s.Name, member.Err())
		case <-ctx.Done():
			logger.Info("stopping")
			return closeInTime(member, logger)
		}
	}
}

// newestNet calls stop when the launcher ends, if there is one. The channel has the newest emulation of links that the
// launcher has sent.
func newestNet(stop func()) <-chan string {
	links := make(chan string, 1)
	launch.WatchParent(stop, func(net string) {
		select {
		case <-links: // an older one
		default:
		}
		links <- net // only here
	})
	return links
}

// tellInit tells systemd that the member serves once it takes part in its cluster, as etcd does. Units with Type=notify
// demand it.
func tellInit(ctx context.Context, joined <-chan struct{}, logger *slog.Logger) {
	select {
	case <-joined:
	case <-ctx.Done():
		return
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		logger.Error("could not tell systemd that the member serves", "err", err)
	}
}

// withProtocol adds to an error about the contents of a data directory the flags that open it.
func withProtocol(err error) error {
	var other *braid.LogKindError
	if !errors.As(err, &other) {
		return err
	}
	var flags []string
	for _, has := range other.Has {
		for _, p := range registry.All() {
			if p.Told() == has.Core && p.Orders[0] == has.Order && (p.Quorums != nil) == (has.Fragments > 0) {
				flags = append(flags, "--protocol "+p.Name)
			}
		}
	}
	if len(flags) == 0 {
		return err
	}
	return fmt.Errorf("%w: start it with %s, as it was", err, strings.Join(flags, " or "))
}

func closeInTime(member *server.Server, logger *slog.Logger) error {
	closed := make(chan error, 1)
	go func() { closed <- member.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			logger.Warn("stopped", "err", err)
		} else {
			logger.Info("stopped")
		}
		return err
	case <-time.After(stopTimeout):
		return errors.New("the member did not stop in time; what it acknowledged is durable")
	}
}

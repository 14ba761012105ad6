package main

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/testcert"
	"github.com/braidlog/braid/server"
)

// configOf is a member's configuration for these flags.
func configOf(t *testing.T, args ...string) server.Config {
	t.Helper()
	s := &settings.Settings{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.Flags(f)
	require.NoError(t, f.Parse(args))
	require.NoError(t, s.Load(f, nil))
	c, err := serverConfig(t.Context(), s, slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(t, err, "%v", args)
	closeListeners(c.ListenClient)
	closeListeners(c.ListenMetrics)
	return c
}

// same compares two members' configurations, if their values are comparable.
func same(a, b server.Config) bool {
	for _, c := range []*server.Config{&a, &b} {
		c.Logger, c.Store.Logger = nil, nil
		if n := len(c.ListenMetrics); n > 0 {
			c.Name += fmt.Sprint(n, " for metrics")
		}
		for _, l := range c.ListenClient {
			host, _, _ := strings.Cut(l.Addr().String(), ":")
			c.Name += " at " + host
		}
		c.ListenClient, c.ListenMetrics = nil, nil
		c.TLS, c.Node.TLS.Config = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// TestEverySettingDoesSomething sets each flag of serve to another value than its default, and requires that the
// member's configuration changes. Flags of etcd without effect are hidden, and logged: see package settings.
func TestEverySettingDoesSomething(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	base := []string{"--data-dir=" + dir + "/a", "--listen-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:1"}
	with := map[string]string{ // value, after the flags that it needs
		"name": "x", "data-dir": dir + "/b", "listen-client-urls": "http://127.0.0.2:0",
		"advertise-client-urls": "http://h:1",
		"listen-peer-urls":      "http://127.0.0.2:1", "initial-advertise-peer-urls": "http://h:2",
		"listen-metrics-urls": "http://127.0.0.3:0",
		"zone":                "eu-west-1", "initial-cluster-zones": "default=eu-west-1",
		"initial-cluster": "default=http://127.0.0.1:1,b=http://h:3", "initial-cluster-token": "x",
		"heartbeat-interval": "50", "election-timeout": "2000", "keep-log-bytes": "1000000000", "snapshot-bytes": "1000000",
		"quota-backend-bytes": "1000000",
		"max-txn-ops":         "7", "strict-reconfig-check": "false",
		"max-learners": "2", "max-concurrent-streams": "9",
		"max-connections": "9", "max-connections-per-client": "9", "max-requests-per-client": "9",
		"user-request-rate": "x=9", "prefix-request-rate": "x=9", "compact-hash-check-time": "7s",
		"corrupt-check-time":             "7s",
		"watch-progress-notify-interval": "7s", "auto-compaction-mode": "--auto-compaction-retention=1 revision",
		"auto-compaction-retention": "5h",
		"auth-token":                "jwt,pub-key=x", "auth-token-ttl": "7", "bcrypt-cost": "5",
		"enable-grpc-gateway": "false", "lease-reads": "true", "fit": "on",
		"protocol": "lcr", "placement": "code", "instances": "--protocol=niagara 2", "leaders": "--protocol=niagara spread",
		"relays":  "--protocol=iss 2",
		"quorums": "--protocol=iss 1/1", "epoch-slots": "--protocol=iss 32",
		"epoch-equal-shares": "--protocol=iss true", "epoch-policy": "--protocol=iss simple",
		"epoch-bans": "--protocol=iss 1-2", "code-k": "--protocol=craft 2", "extra-whole": "--protocol=craft 1",
		"trim-whole":        "--protocol=craft true",
		"lanes":             "true",
		"large-value-bytes": "5000", "max-request-bytes": "50000000", "body-cache-bytes": "7", "scrub-rate": "7",
		"lane-prefix": "x", "net": "latency=1ms",
		"listen-client-http-urls": "http://127.0.0.4:0", "host-whitelist": "a", "cors": "https://a.example.com",
		"enable-pprof": "true", "grpc-keepalive-min-time": "7s", "grpc-keepalive-interval": "7s",
		"grpc-keepalive-timeout": "7s",
		"backend-batch-interval": "7s", "backend-batch-limit": "7", "backend-bbolt-freelist-type": "array",
		"memory-mlock": "true", "unsafe-no-fsync": "true",
		"compaction-batch-limit": "7", "compaction-sleep-interval": "7s",
		"bootstrap-defrag-threshold-megabytes": "7",
		"metrics":                              "extensive",
		"warning-apply-duration":               "7s", "warning-unary-request-duration": "7s",
		"enable-distributed-tracing":        "true",
		"distributed-tracing-address":       "--enable-distributed-tracing 127.0.0.1:7",
		"distributed-tracing-service-name":  "--enable-distributed-tracing x",
		"distributed-tracing-instance-id":   "--enable-distributed-tracing x",
		"distributed-tracing-sampling-rate": "--enable-distributed-tracing 7",
	}
	elsewhere := []string{
		"config-file", "log-level", "log-format", "gc-percent", "memory-limit-bytes", // of the process
		"wal-dir",                                                        // waldir_test.go
		"log-outputs", "enable-log-rotation", "log-rotation-config-json", // serve_log_test.go
		"socket-reuse-port",         // serve_linux_test.go
		"auto-tls", "peer-auto-tls", // tls_linux_test.go
		"feature-gates",                 // warns: package settings
		"initial-cluster-state", "join", // join_linux_test.go
		"force-new-cluster",                         // forcenew_linux_test.go
		"client-cert-auth", "peer-client-cert-auth", // with TLS: package settings, and below
	}
	require.True(t, same(configOf(t, base...), configOf(t, base...)))
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	new(settings.Settings).Flags(f)
	f.VisitAll(func(flag *pflag.Flag) {
		value, ok := with[flag.Name]
		isTLS := strings.Contains(flag.Name, "cert-") || strings.Contains(flag.Name, "tls-") ||
			strings.HasSuffix(flag.Name, "-file") || flag.Name == "cipher-suites"
		isDiscovery := strings.HasPrefix(flag.Name, "discovery-") // discover_test.go, and package settings
		if flag.Hidden || !ok && (isTLS || isDiscovery ||
			strings.Contains(" "+strings.Join(elsewhere, " ")+" ", " "+flag.Name+" ")) {
			return
		}
		require.True(t, ok, "--%s does nothing that this test knows of", flag.Name)
		args := base
		if needs, last, two := strings.Cut(value, " "); two {
			args, value = append(args[:len(args):len(args)], needs), last
		}
		require.False(t,
			same(configOf(t, args...), configOf(t, append(args[:len(args):len(args)], "--"+flag.Name+"="+value)...)),
			"--%s=%s changes nothing", flag.Name, value)
	})

	ca := testcert.New(t)
	ca.Issue("m1")
	secure := []string{"--data-dir=" + dir + "/a", "--listen-client-urls=https://127.0.0.1:0",
		"--listen-peer-urls=https://127.0.0.1:1",
		"--cert-file=" + ca.Path("m1.crt"), "--key-file=" + ca.Path("m1.key"), "--peer-cert-file=" + ca.Path("m1.crt"),
		"--peer-key-file=" + ca.Path("m1.key"),
		"--trusted-ca-file=" + ca.Path("ca.crt"), "--peer-trusted-ca-file=" + ca.Path("ca.crt"), "--client-cert-auth",
		"--tls-min-version=TLS1.3"}
	c := configOf(t, secure...)
	require.True(t, c.Store.ClientCertAuth)
	require.NotNil(t, c.TLS.ClientCAs)
	require.NotNil(t, c.Node.TLS.Config.RootCAs)
	require.Equal(t, c.TLS.MinVersion, c.Node.TLS.Config.MinVersion)
}

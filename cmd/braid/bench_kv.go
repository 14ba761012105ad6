package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/server"
)

// benchKVFlags are the flags of braid bench kv.
type benchKVFlags struct {
	load         bench.KVConfig
	values       string
	distribution string
	mix, ycsb    string
	writes       float64
	contestFlags
	shape             bench.Shape
	net               string
	cacert, cert, key string
	consistency       string
	flags             *pflag.FlagSet
}

func newBenchKVCommand() *cobra.Command {
	var f benchKVFlags
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "benchmark the endpoints of any etcd v3 server",
		Long: `kv loads the endpoints of a server with etcd's API: braid, or etcd itself. Every client has
one request in flight at a time; the clients share the connections.

Requests:

  --write-ratio W      puts and gets
  --mix read=95%,...   shares of read, update, insert, scan, rmw (read, then put unless the
                       key changed), delete, and grant (of a lease of 10 minutes)
  --ycsb A ... F       a mix and a distribution of YCSB; the keys are put before the run
  --distribution D     uniform; conflict:25% (a share on one hot key, the others on keys of
                       this client only; hot=N keys); normal:mean=M,deviation=D,move=K (the
                       mean moves by K keys a second); zipf:0.99 (scatter=1: the popular
                       keys are scattered); exponential:mean=M; latest
  --val-size S         bytes of a value: 16, 1MiB, or 16-1MiB, each doubling equally likely

--batch N sends N puts in a message of braid's stream of puts (docs/using/put-stream.md). A client waits
for the answer before it sends the next message; latency is that of a message.

Timing:

  by default           a closed loop: the next request after the last answer
  --throttle R         a closed loop with at most R requests a second
  --rate R             an open loop: R requests a second, whether or not the server keeps up.
                       Latency counts from when a request was due, so it includes the wait
                       for a free client

--check records the history of every client, even during failures, and checks it for
linearizability key by key. If it is not linearizable, the exit code is 1. A request without an
answer may take effect at any later time, or never. The keys belong to this run, and are removed
at the end, unless --key-prefix is given.

Without --endpoints, and with --peer or --protocol, it starts the servers itself: each
cluster as processes on this machine, one after the other in alternating rounds, and measures
the CPU and disk use of these processes.

--peer limit measures gRPC itself: as many processes as members, with the options of braid's
gRPC server, which answer puts and gets at once, without a log and a store. It is no rival: the
result has each server's share of it.`,
		Example: `  braid bench kv --endpoints 127.0.0.1:2379 --clients 100 --conns 100 --total 100000
  braid bench kv --endpoints 127.0.0.1:2379 --write-ratio 0.1 --consistency s
  braid bench kv --endpoints 127.0.0.1:2379,127.0.0.1:2389,127.0.0.1:2399 --ycsb F --check
  braid bench kv --batch 100 --clients 20
  braid bench kv --peer etcd --mix grant=50%,update=50%
  braid bench kv --rate 5000 --distribution conflict:25% --val-size 16-64KiB
  braid bench kv --peer etcd --clients 1000 --conns 100 --duration 10s
  braid bench kv --peer etcd --peer limit
  braid bench kv --protocol niagara --instances 4 --peer raft --peer etcd --conns 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	return cmd
}

func (f *benchKVFlags) register(cmd *cobra.Command) {
	fl, l := cmd.Flags(), &f.load
	f.flags = fl
	fl.StringSliceVar(&l.Endpoints, "endpoints", nil, "gRPC endpoints (default 127.0.0.1:2379)")
	f.contestFlags.register(fl)
	settings.CommonFlags(fl, settings.Layout, &f.shape.Values)
	settings.OwnFlags(fl, registry.ServerSettings(), registry.ServersHaving, false, &f.shape.Values)
	fl.StringVar(&f.net, "net", "", netspec.Usage+"; of a cluster that is started")
	fl.IntVar(&l.Clients, "clients", 100, "clients, each with one request in flight")
	fl.IntVar(&l.Conns, "conns", 0, "connections (default: one for each client, at most 100)")
	fl.Int64Var(&l.Total, "total", 0, "requests to make, warm-up included (0: no limit)")
	fl.DurationVar(&l.Duration, "duration", 10*time.Second, "duration of the measurement (0: no limit)")
	fl.DurationVar(&l.Warmup, "warmup", time.Second, "duration of the load before the measurement")
	fl.IntVar(&l.KeySize, "key-size", 8, "bytes of a key")
	fl.StringVar(&l.KeyPrefix, "key-prefix", "", "prefix of all keys, part of their size (default with --check: unique)")
	fl.StringVar(&f.values, "val-size", "8", "bytes of a value, or a range of them, up to 16MiB")
	w := &l.Workload
	fl.IntVar(&w.KeySpace, "key-space", 10_000, "number of different keys")
	fl.Float64Var(&f.writes, "write-ratio", 1, "share of puts; the others are gets")
	fl.StringVar(&f.mix, "mix", "", "shares of read, update, insert, scan, rmw, delete and grant")
	fl.StringVar(&f.ycsb, "ycsb", "", "workload of YCSB: A, B, C, D, E or F")
	fl.StringVar(&f.distribution, "distribution", "uniform",
		"distribution of keys: uniform, conflict, normal, zipf, exponential or latest, with parameters")
	fl.IntVar(&w.ScanLimit, "scan-limit", 100, "maximal number of keys of a scan")
	fl.Uint64Var(&w.Seed, "seed", 1, "seed of all random choices")
	fl.BoolVar(&l.Load, "load", false, "put every key before the run (default with --ycsb)")
	fl.BoolVar(&l.Check, "check", false, "record the clients' history and check that it is linearizable")
	fl.DurationVar(&l.CheckLimit, "check-limit", time.Minute, "time limit of the check")
	fl.StringVar(&l.API, "api", "etcd", "API of the endpoints: etcd, or map (that of mapkv-serve)")
	fl.StringVar(&f.consistency, "consistency", "l", "consistency of gets: l (linearizable) or s (serializable)")
	fl.Float64Var(&l.Rate, "rate", 0,
		"open loop: requests a second over all clients; latency counts from when one was due")
	fl.Float64Var(&l.Throttle, "throttle", 0, "closed loop: maximal requests a second over all clients")
	fl.IntVar(&l.Batch, "batch", 0,
		"puts that a client sends in one message of braid's stream of puts (0: a call for each put)")
	fl.BoolVar(&l.TargetLeader, "target-leader", false, "send everything to the leader")
	fl.IntSliceVar(&l.Servers, "server-pids", nil,
		"process ids of the servers, if they run on this machine, for their CPU and disk use")
	fl.StringVar(&f.cacert, "cacert", "", "verify the servers with this CA bundle")
	fl.StringVar(&f.cert, "cert", "", "identify with this certificate")
	fl.StringVar(&f.key, "key", "", "identify with this key")
}

// completeLoad sets defaults that depend on other flags, and validates.
func (f *benchKVFlags) completeLoad(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	l := &f.load
	if !given("conns") {
		l.Conns = min(l.Clients, 100)
	}
	if given("total") && !given("duration") {
		l.Duration = 0
		if !given("warmup") {
			l.Warmup = 0
		}
	}
	switch f.consistency {
	case "l":
	case "s":
		l.Serializable = true
	default:
		return usagef("--consistency %q: must be l or s", f.consistency)
	}
	if err := f.workload(given); err != nil {
		return usageError{err}
	}
	var err error
	if l.TLS, err = f.tls(); err != nil {
		return usageError{err}
	}
	l.PutStream = server.PutStreamMethod
	if err := l.Validate(); err != nil {
		return usageError{err}
	}
	if err := readNet(&f.net); err != nil {
		return usageError{err}
	}
	if given("endpoints") && len(l.Endpoints) == 0 {
		return usagef("--endpoints: none is given")
	}
	if len(l.Endpoints) > 0 {
		for _, flag := range []string{"protocol", "instances", "leaders", "placement", "net", "peer", "rivals", "nodes",
			"rounds", "data"} {
			if given(flag) {
				return usagef("--%s is for servers that are started here; --endpoints are there already", flag)
			}
		}
	}
	return nil
}

// workload builds the workload from the flags.
func (f *benchKVFlags) workload(given func(string) bool) (err error) {
	l := &f.load
	w := &l.Workload
	for _, pair := range [][2]string{{"mix", "write-ratio"}, {"ycsb", "write-ratio"}, {"ycsb", "mix"}} {
		if given(pair[0]) && given(pair[1]) {
			return fmt.Errorf("--%s and --%s both say what share of requests writes: give one of them", pair[0], pair[1])
		}
	}
	for _, flag := range []string{"rate", "throttle"} {
		if v := f.flags.Lookup(flag).Value.String(); given(flag) && v == "0" {
			return fmt.Errorf("--%s 0: must be positive", flag)
		}
	}
	if w.Keys, err = workload.ParseKeys(f.distribution); err != nil {
		return fmt.Errorf("--distribution: %w", err)
	}
	if w.Values, err = workload.ParseSizes(f.values); err != nil {
		return fmt.Errorf("--val-size: %w", err)
	}
	switch {
	case given("mix"):
		w.Mix, err = workload.ParseMix(f.mix)
	case given("ycsb"):
		keys := w.Keys
		if w.Mix, w.Keys, err = workload.YCSB(f.ycsb); given("distribution") {
			w.Keys = keys
		}
		l.Load = l.Load || !given("load")
	case !(f.writes >= 0 && f.writes <= 1):
		return fmt.Errorf("write ratio %v: must be between 0 and 1", f.writes)
	default:
		w.Mix = workload.Ratio(f.writes)
	}
	if w.ScanLimit < 1 {
		return fmt.Errorf("--scan-limit %d: must be at least 1", w.ScanLimit)
	}
	if l.API == "etcd" {
		l.API = bench.EtcdAPI
	}
	if l.Check && !given("key-prefix") {
		f.ownKeys(given("key-size"))
	}
	return err
}

// ownKeys gives a checked run its own keys. Values of earlier runs would look like values that were never written.
func (f *benchKVFlags) ownKeys(sizeGiven bool) {
	l := &f.load
	l.KeyPrefix, l.RemoveKeys = fmt.Sprintf("check-%x/", time.Now().UnixNano()), true
	if !sizeGiven {
		l.KeySize += len(l.KeyPrefix)
	}
}

func (f *benchKVFlags) tls() (*tls.Config, error) {
	if f.cacert == "" && f.cert == "" && f.key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.cacert != "" {
		pem, err := os.ReadFile(f.cacert)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--cacert %s: no certificate in it", f.cacert)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, errors.New("--cert and --key belong together")
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func (f *benchKVFlags) run(cmd *cobra.Command) error {
	if err := f.completeLoad(cmd); err != nil {
		return err
	}
	progress := newProgress(f.json)
	f.load.Progress = progress.show
	defer progress.clear()
	start := len(f.peers) > 0 || cmd.Flags().Changed("protocol") || f.shape != (bench.Shape{}) || f.net != ""
	if start && len(f.load.Endpoints) == 0 {
		return f.contest(cmd, progress)
	}
	if len(f.load.Endpoints) == 0 {
		f.load.Endpoints = []string{"127.0.0.1:2379"}
	}
	f.load.Protocol = "kv"
	result, err := bench.RunKV(cmd.Context(), f.load)
	progress.clear()
	if err != nil {
		return err
	}
	if err := f.print(cmd.OutOrStdout(), &bench.KVContest{Results: []*bench.KVResult{result}}, 1); err != nil {
		return err
	}
	return f.verdict(result)
}

// verdict returns an error unless a requested check succeeded.
func (f *benchKVFlags) verdict(results ...*bench.KVResult) error {
	for _, r := range results {
		if f.load.Check && !r.Verified {
			return fmt.Errorf("%s: the history is %s", r.Protocol, r.History.Verdict)
		}
	}
	return nil
}

// contest starts servers and compares them.
func (f *benchKVFlags) contest(cmd *cobra.Command, progress *progress) error {
	if err := f.complete(cmd.Flags().Changed); err != nil {
		return err
	}
	line, err := settings.Tolerance(f.protocol, f.shape.Values, f.Nodes, nil)
	if err != nil {
		return usageError{err}
	}
	if line != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), line)
	}
	c := bench.KVContestConfig{Contest: f.Contest, Load: f.load, Shape: f.shape, Net: f.net}
	if err := c.Validate(); err != nil {
		return usageError{err}
	}
	remove, err := f.open(cmd, &c.Contest)
	if err != nil {
		return err
	}
	defer remove()
	result, err := bench.RunKVContest(cmd.Context(), c)
	progress.clear()
	if result == nil {
		return err
	}
	if perr := f.print(cmd.OutOrStdout(), result, f.Rounds); perr != nil {
		return perr
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return f.verdict(result.Results...)
}

// print writes one result alone, several as a contest.
func (f *benchKVFlags) print(out io.Writer, c *bench.KVContest, rounds int) error {
	single := len(c.Results) == 1 && rounds == 1
	switch {
	case f.json && single:
		return bench.WriteJSON(out, c.Results[0])
	case f.json:
		return bench.WriteJSON(out, c)
	case single:
		c.Results[0].WriteText(out)
	default:
		c.WriteText(out)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/server"
)

func init() { commands = append(commands, newUpCommand) }

// upFlags are the flags of braid up.
type upFlags struct {
	nodes, cards   int
	zones          []string
	log            settings.Log
	logFlags       *pflag.FlagSet // of log
	data, logLevel string
	restoreFile    string
	imports        importFlags // of restoreFile
	basePort       int
	dashPort       int
	restart, json  bool
	readyTimeout   time.Duration
}

func newUpCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster on this machine, each member a process",
		Long: `up starts a cluster on this machine, each member as a separate process, and prints its endpoints
and "ready" once /readyz of every member succeeds. Ctrl-C stops it. The members end with it.

The dashboard shows the cluster in a browser. There members can be killed, paused, started, cut off,
slowed down and healed, the protocol changed, and a load started.

The data directory keeps the cluster: the same --data resumes it, with its members, names,
ports, protocol, placement, instances, --code-k, --quorums, the epochs and --net; another --net
replaces it, and --net= ends it. All other flags must be given each time. The members' logs are
m1.log, m2.log and so on in the data directory.

Member number i serves clients on --base-port + 10·(i-1) and other members on the next port, or
on the next --cards ports.

With --protocol craft followers keep a fragment of a large value, a fraction of its bytes;
see docs/using/craft.md. Without --code-k it needs at least four members.

With --protocol niagara several instances of Raft are merged into one log, so that more than one
core and network card replicate; with --placement code each has fragments: see
docs/using/niagara.md. --net "…,nics=N" gives each member N emulated network cards.

With --protocol lcr the member that a client reaches replicates blind puts to the others itself, if
the client or --lane-prefix asks for it: see docs/using/lcr.md.`,
		Example: `  braid up                              # three members, in ./braid-data
  braid up --nodes 5 --data /tmp/five --base-port 12379
  braid up --nodes 5 --protocol craft --data coded      # half of each large value on each follower
  braid up --nodes 5 --protocol craft --code-k 3 --data thirds --scrub-rate 16777216
  braid up --protocol niagara --instances 4 --data merged
  braid up --protocol niagara --leaders spread --net bandwidth=250mbit,nics=4 --data cards
  braid up --nodes 5 --protocol niagara --placement code --data braided
  braid up --protocol lcr --lane-prefix sensor/=accepted --data lanes
  braid up --nodes 6 --zones a,b,c --protocol multi-paxos --quorums zones:3/1/0 --data zoned
  braid up --restart                    # restart members that crash
  braid up --restore backup.db --data new
  braid up --net latency=5ms,loss=0.1%  # emulated links between the members
  braid up --net regions=us-east-1+eu-west-1+ap-northeast-1      # a member in each region
  braid up --net "latency=1ms;1~2:latency=40ms;2>3:loss=1%"      # exceptions for pairs; > is one direction`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.flags(cmd.Flags())
	return cmd
}

func (f *upFlags) flags(fl *pflag.FlagSet) {
	fl.IntVar(&f.nodes, "nodes", 3, "members, 1 to 9")
	fl.IntVar(&f.cards, "cards", 0, "addresses of a member for other members, one per network card, 1 to 9; instances "+
		"are distributed over them (0: as many as nics in --net, else 1)")
	fl.StringSliceVar(&f.zones, "zones", nil, "zones of the members, in turns: with a,b,c the members m1 and m4 are in "+
		"a; for a cluster that exists, those to which its members change")
	f.logFlags = pflag.NewFlagSet("log", pflag.ContinueOnError)
	f.log.Flags(f.logFlags)
	fl.AddFlagSet(f.logFlags)
	fl.StringVar(&f.data, "data", "braid-data", "data directory")
	fl.IntVar(&f.basePort, "base-port", 2379, "client port of the first member, 0: any free ports")
	fl.IntVar(&f.dashPort, "dash-port", 0, "port of the dashboard, 0: any free one (default --base-port + 9 if that "+
		"is free, else any free one)")
	fl.StringVar(&f.restoreFile, "restore", "", "start a new cluster with the keys of this snapshot file, or "+
		"directory of backups")
	f.imports.flags(fl)
	fl.BoolVar(&f.restart, "restart", false, "restart members that crash")
	fl.StringVar(&f.logLevel, "log-level", "info", "members' log level: debug, info, warn or error")
	fl.DurationVar(&f.readyTimeout, "ready-timeout", time.Minute, "time limit for all members to become healthy")
	fl.BoolVar(&f.json, "json", false, "print events as lines of JSON")
}

func (f *upFlags) run(cmd *cobra.Command) error {
	if err := f.resume(cmd.Flags().Changed); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return usageError{err}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	report := printEvents(cmd.OutOrStdout())
	if f.json {
		report = printEventsJSON(cmd.OutOrStdout())
	}
	options := launch.Options{
		Healthy: published, Fate: fateOf,
		Dir: f.data, Spec: f.spec(cmd), Restart: f.restart, ReadyTimeout: f.readyTimeout,
		StopTimeout: stopTimeout + time.Second,
		Command: func(m *launch.Manifest, member launch.Member, dir string) []string {
			return append([]string{program, "serve"}, f.memberFlags(m, member, dir)...)
		},
	}
	if f.restoreFile != "" {
		options.Prepare = func(dir string) error {
			_, err := f.imports.restore(f.restoreFile, dir)
			return err
		}
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	launch.WatchParent(stop, nil)
	err = f.runWithDash(ctx, options, cmd.Flags().Changed("dash-port"), report)
	var conflict *launch.ConflictError
	if errors.As(err, &conflict) {
		return usageError{err}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// resume sets values that the command line omits and the data directory has.
func (f *upFlags) resume(given func(flag string) bool) error {
	m, err := launch.ReadManifest(f.data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !given("nodes") {
		f.nodes = len(m.Members)
	}
	if !given("protocol") && (!given("placement") || (&settings.Log{Protocol: m.Protocol}).Merges()) {
		f.log.Protocol = m.Protocol
	}
	v := &f.log.Values
	if f.log.Protocol == m.Protocol {
		if !given("placement") {
			*v = common.Placement.Set(*v, protocol.Placement(m.Placement))
		}
		if !given("instances") {
			*v = common.Instances.Set(*v, m.Instances)
		}
	}
	if !given("code-k") && f.log.Cuts() {
		*v = common.CodeK.Set(*v, m.CodeK)
	}
	if f.log.Protocol == m.Protocol && !given("quorums") {
		*v = settings.Quorums(m.Quorums).Over(*v)
	}
	if f.log.Protocol == m.Protocol {
		if err := f.resumeEpochs(m.Epochs, given); err != nil {
			return err
		}
	}
	if !given("net") && m.Net != "" {
		return f.logFlags.Set("net", m.Net)
	}
	return nil
}

// resumeEpochs does so for the settings of epochs.
func (f *upFlags) resumeEpochs(had string, given func(flag string) bool) error {
	for _, arg := range strings.Fields(had) {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if given(name) {
			continue
		}
		if err := f.logFlags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (f *upFlags) check() error {
	switch {
	case f.nodes < 1 || f.nodes > 9:
		return fmt.Errorf("--nodes %d: it is 1 to 9", f.nodes)
	case f.cards < 0 || f.cards > launch.MaxCards:
		return fmt.Errorf("--cards %d: it is 1 to %d, or 0 for the default", f.cards, launch.MaxCards)
	case f.basePort < 0 || f.basePort > 1<<16-1:
		return fmt.Errorf("--base-port %d does not exist", f.basePort)
	case f.dashPort < 0 || f.dashPort > 1<<16-1:
		return fmt.Errorf("--dash-port %d does not exist", f.dashPort)
	case f.data == "":
		return errors.New("--data is empty")
	case f.readyTimeout <= 0:
		return errors.New("--ready-timeout must be positive")
	}
	if f.restoreFile == "" && slices.ContainsFunc(importNames, f.imports.given.Changed) {
		return fmt.Errorf("--%s are for --restore", strings.Join(importNames, ", --"))
	}
	if err := f.imports.check(f.restoreFile); err != nil {
		return err
	}
	if f.restoreFile != "" && launch.Exists(f.data) {
		return fmt.Errorf("--restore begins a new cluster, and %s holds one: choose another --data", f.data)
	}
	_, lanes := parseAll(f.log.LanePrefixes, server.ParseLanePrefix)
	if err := errors.Join(readNet(&f.log.Net), f.log.Complete(), lanes); err != nil {
		return err
	}
	zones, err := f.memberZones()
	if err == nil {
		_, err = settings.Tolerance(f.log.Protocol, f.log.Values, f.nodes, zones)
	}
	return err
}

// published waits until all members have published their client URLs. Then the list of members is complete, and it
// can be changed. With auth on they did so before.
func published(ctx context.Context, member launch.Member) error {
	for _, m := range status.Ask(ctx, status.Options{Endpoints: []string{member.ClientAddr()}, Only: true,
		Timeout: 2 * time.Second}) {
		if m.Refused {
			return nil
		}
		if m.Error != "" {
			return errors.New(m.Error)
		}
		for _, p := range m.Members {
			if len(p.ClientURLs) == 0 {
				return fmt.Errorf("%s did not publish its addresses yet", p.PeerURLs)
			}
		}
	}
	return nil
}

// spec is the wanted cluster. If the directory already has a cluster, ports count only if a flag names them.
func (f *upFlags) spec(cmd *cobra.Command) launch.Spec {
	spec := launch.Spec{
		Nodes: f.nodes, BasePort: f.basePort, Cards: f.cards, Instances: f.log.Instances(),
		Protocol: f.log.Protocol, Placement: f.log.Placement(), CodeK: f.log.CodeK(), Quorums: f.quorums(),
		Epochs: strings.Join(settings.EpochArgs(f.log.Protocol, f.log.Values), " "), Zones: f.zones, Net: f.log.Net,
	}
	exists := launch.Exists(f.data)
	switch {
	case exists && !cmd.Flags().Changed("base-port"):
		spec.BasePort = 0
	case f.basePort == 0:
		spec.BasePort = launch.AnyPort
	}
	if f.cards == 0 && !exists {
		emulation, _ := netspec.Parse(f.log.Net) // check has validated it
		spec.Cards = min(max(1, emulation.Cards("").Number), launch.MaxCards)
	}
	return spec
}

// quorums are the wanted ones; "": not given.
func (f *upFlags) quorums() string {
	text, given := f.log.Values.Get(settings.QuorumsName)
	if !given && f.logFlags.Changed(settings.QuorumsName) {
		return registry.Settings().Text(settings.QuorumsName, f.log.Values)
	}
	return text
}

// manifestFlags are the flags of settings.Log that the data directory records.
var manifestFlags = append([]string{"protocol", "placement", "instances", "code-k", "quorums", "net"},
	settings.EpochNames...)

// memberFlags are the flags of a member's own process.
func (f *upFlags) memberFlags(m *launch.Manifest, member launch.Member, dir string) []string {
	peerURLs := strings.Join(member.PeerURLs(), ",")
	flags := []string{
		"--name=" + member.Name, "--data-dir=" + dir,
		"--listen-client-urls=" + member.ClientURL(), "--advertise-client-urls=" + member.ClientURL(),
		"--listen-peer-urls=" + peerURLs, "--initial-advertise-peer-urls=" + peerURLs,
		"--initial-cluster=" + m.InitialCluster(), "--initial-cluster-token=" + m.Token,
		"--protocol=" + m.Protocol, "--placement=" + m.Placement, "--instances=" + strconv.Itoa(m.Instances),
		"--code-k=" + strconv.Itoa(m.CodeK), "--quorums=" + m.Quorums, "--net=" + m.Net,
		"--log-level=" + f.logLevel,
	}
	flags = append(flags, f.placeFlags(m, member, dir)...)
	flags = append(flags, settings.EpochArgs(f.log.Protocol, f.log.Values)...)
	f.logFlags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed || slices.Contains(manifestFlags, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			flags = append(flags, "--"+flag.Name+"="+v)
		}
	})
	if memory := machineMemory(); memory > 0 && runtime.GOOS == "linux" {
		flags = append(flags, "--memory-limit-bytes="+strconv.FormatInt(memory/2/int64(len(m.Members)), 10))
	}
	return flags
}

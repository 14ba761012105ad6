package main

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/server"
)

// optionsOf are the log's options for these flags.
func optionsOf(t *testing.T, args ...string) braid.Options {
	t.Helper()
	s := &settings.Settings{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.Flags(f)
	require.NoError(t, f.Parse(args))
	require.NoError(t, s.Load(f, nil))
	return nodeOptions(s, identity{}, nil)
}

func TestFlagsReachTheLog(t *testing.T) {
	o := optionsOf(t)
	require.Equal(t, braid.Named("", "order=single", "placement=copy"), o.Protocol)
	require.Zero(t, o.Limits.BodyCacheBytes, "64 MiB, or less by the memory limit")
	require.Equal(t, 4<<20, o.Limits.ScrubBytesPerSecond)
	require.Zero(t, o.Limits.CommandBytes)

	o = optionsOf(t, "--protocol=craft", "--code-k=3", "--extra-whole=1", "--trim-whole", "--body-cache-bytes=5",
		"--scrub-rate=0",
		"--max-request-bytes=50000000", "--net=latency=1ms")
	require.Equal(t, braid.Named("craft", "code-k=3", "extra-whole=1", "trim-whole=true", "order=single",
		"placement=code"), o.Protocol)
	require.Equal(t, 5, o.Limits.BodyCacheBytes)
	require.Negative(t, o.Limits.ScrubBytesPerSecond, "0 is never, not the default")
	require.Equal(t, 50000000, o.Limits.CommandBytes)
	require.Equal(t, "latency=1ms", o.Experiment.Net)

	o = optionsOf(t, "--protocol=niagara")
	require.Equal(t, braid.Named("niagara", "instances=4", "leaders=together", "order=niagara", "placement=copy"),
		o.Protocol)

	o = optionsOf(t, "--protocol=niagara", "--placement=code", "--instances=2", "--code-k=2", "--extra-whole=1",
		"--listen-peer-urls=http://127.0.0.1:1,http://127.0.0.2:1")
	require.Equal(t, braid.Named("niagara", "instances=2", "leaders=spread", "code-k=2", "extra-whole=1", "order=niagara",
		"placement=code"), o.Protocol)
	require.Equal(t, []string{"127.0.0.1:1", "127.0.0.2:1"}, o.Listen)
}

// upArgs are the flags of the first member's process in braid up with these flags.
func upArgs(t *testing.T, m *launch.Manifest, args ...string) (told []string, wanted launch.Spec) {
	t.Helper()
	var f upFlags
	cmd := &cobra.Command{}
	f.flags(cmd.Flags())
	require.NoError(t, cmd.ParseFlags(append(args, "--data="+t.TempDir())))
	require.NoError(t, f.check())
	return f.memberFlags(m, m.Members[0], "dir"), f.spec(cmd)
}

func TestCardsAndInstancesOfUp(t *testing.T) {
	m := &launch.Manifest{
		Protocol: "niagara", Placement: "code", Instances: 8, CodeK: 2, Net: "nics=2",
		Members: []launch.Member{{Name: "m1", ClientPort: 1, PeerPort: 2, MorePeerPorts: []int{3}},
			{Name: "m2", ClientPort: 11, PeerPort: 12, MorePeerPorts: []int{13}}},
	}
	told, wanted := upArgs(t, m, "--protocol=niagara", "--placement=code", "--code-k=2", "--instances=8",
		"--leaders=together", "--net=nics=2")
	for _, flag := range []string{
		"--protocol=niagara", "--placement=code", "--instances=8", "--code-k=2", "--leaders=together", "--net=nics=2",
		"--listen-peer-urls=http://127.0.0.1:2,http://127.0.0.1:3",
		"--initial-advertise-peer-urls=http://127.0.0.1:2,http://127.0.0.1:3",
		"--initial-cluster=m1=http://127.0.0.1:2,m1=http://127.0.0.1:3,m2=http://127.0.0.1:12,m2=http://127.0.0.1:13",
	} {
		require.Contains(t, told, flag)
	}
	require.Equal(t, launch.Spec{Nodes: 3, BasePort: 2379, Cards: 2, Protocol: "niagara", Placement: "code", CodeK: 2,
		Instances: 8, Net: "nics=2"}, wanted)
	_, wanted = upArgs(t, m, "--net=nics=1000")
	require.Equal(t, launch.MaxCards, wanted.Cards)
	_, wanted = upArgs(t, m, "--net=nics=4", "--cards=2")
	require.Equal(t, 2, wanted.Cards)
	_, wanted = upArgs(t, m)
	require.Equal(t, 1, wanted.Cards)
}

// TestZonesOfUp: the first members know the zones of all. Zones that are given later, and those of a member that was
// added in the place of one, are changes.
func TestZonesOfUp(t *testing.T) {
	m := &launch.Manifest{Protocol: "raft", Placement: "copy", Instances: 1,
		Members: []launch.Member{{Name: "m1", ClientPort: 1, PeerPort: 2, Zone: "a"}, {Name: "m2", Zone: "b"}}}
	told, _ := upArgs(t, m)
	require.Contains(t, told, "--zone=")
	require.Contains(t, told, "--initial-cluster-zones=m1=a,m2=b")
	told, wanted := upArgs(t, m, "--zones=c,d")
	require.Equal(t, []string{"c", "d"}, wanted.Zones)
	require.Contains(t, told, "--zone=c")
	require.Contains(t, told, "--initial-cluster-zones=m1=a,m2=b")
	m.Members[0].Joined = true
	told, _ = upArgs(t, m)
	require.Contains(t, told, "--zone=a")
	require.NotContains(t, told, "--initial-cluster-zones=m1=a,m2=b")
	m.Members[0].Joined, m.Members[0].Zone, m.Members[1].Zone = false, "", ""
	told, _ = upArgs(t, m)
	require.NotContains(t, strings.Join(told, " "), "--initial-cluster-zones")

	for zones, want := range map[string]string{"a,b,c,d": "4 zones for 3 members", "a,": "no name",
		"a,b/c": "not a name"} {
		f := upFlags{nodes: 3, data: "x", readyTimeout: 1, log: settings.Log{Protocol: "raft"},
			zones: strings.Split(zones, ",")}
		_, err := f.memberZones()
		require.ErrorContains(t, err, want)
	}
}

// Prefixes may have commas, so each is a separate flag, also from up to its members.
func TestLanePrefixes(t *testing.T) {
	m := &launch.Manifest{Protocol: "raft", Placement: "copy", Instances: 1,
		Members: []launch.Member{{Name: "m1", ClientPort: 1, PeerPort: 2}}}
	told, _ := upArgs(t, m, "--lane-prefix=a,b=accepted", "--lane-prefix=c")
	require.Contains(t, told, "--lane-prefix=a,b=accepted")
	require.Contains(t, told, "--lane-prefix=c")
	s := &settings.Settings{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.Flags(f)
	require.NoError(t, f.Parse([]string{"--lane-prefix=a,b=accepted", "--lane-prefix=c"}))
	lanes, err := parseAll(s.LanePrefixes, server.ParseLanePrefix)
	require.NoError(t, err)
	require.Equal(t, []server.LanePrefix{{Prefix: "a,b", Accepted: true}, {Prefix: "c"}}, lanes)

	_, err = parseAll([]string{"=accepted"}, server.ParseLanePrefix)
	require.ErrorContains(t, err, "lane prefix")
}

// A wrong flag is found before anything is changed, as the exit code says.
func TestWrongFlagsChangeNothing(t *testing.T) {
	for _, wrong := range []string{
		"--lane-prefix==accepted", "--user-request-rate=root", "--prefix-request-rate=/a=-1",
	} {
		dir := t.TempDir()
		s := &settings.Settings{}
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		s.Flags(f)
		require.NoError(t, f.Parse([]string{wrong, "--data-dir=" + dir + "/data", "--wal-dir=" + dir + "/log"}))
		require.NoError(t, s.Load(f, nil))
		_, err := serverConfig(t.Context(), s, slog.New(slog.DiscardHandler))
		require.ErrorAs(t, err, new(usageError), wrong)
		made, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, made, wrong)
	}
}

func TestPlacementInWords(t *testing.T) {
	for _, c := range []struct {
		members, codeK int
		placement      string
		want           string
	}{
		{3, 0, "copy", "placement copy"},
		{5, 0, "code", "placement code: 1/2 of each large value on each follower"},
		{3, 2, "code", "placement code: 1/2 of each large value on each follower"},
		{3, 0, "code", "placement code: large values whole on each member, as these are too few to cut values " +
			"for (see --code-k)"},
	} {
		m := &launch.Manifest{Placement: c.placement, CodeK: c.codeK, Members: make([]launch.Member, c.members)}
		require.Equal(t, c.want, placementOf(m))
	}
}

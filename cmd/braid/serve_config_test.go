package main

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/settings"
)

// optionsOf is what flags mean to the log.
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
	require.Equal(t, braid.PlacementCopy, o.Placement)
	require.Equal(t, 64<<20, o.BodyCacheBytes)
	require.Equal(t, 4<<20, o.ScrubBytesPerSecond)
	require.Zero(t, o.MaxCommandBytes)

	o = optionsOf(t, "--protocol=craft", "--code-k=3", "--extra-whole=1", "--trim-whole", "--body-cache-bytes=5", "--scrub-rate=0",
		"--max-request-bytes=50000000", "--net=latency=1ms")
	require.Equal(t, braid.PlacementCode, o.Placement)
	require.Equal(t, 3, o.CodeK)
	require.Equal(t, 1, o.ExtraWhole)
	require.True(t, o.TrimWhole)
	require.Equal(t, 5, o.BodyCacheBytes)
	require.Negative(t, o.ScrubBytesPerSecond, "0 is never, not the default")
	require.Equal(t, 50000000, o.MaxCommandBytes)
	require.Equal(t, "latency=1ms", o.Net)
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
		{3, 0, "code", "placement code: large values whole on each member, as these are too few to cut values for (see --code-k)"},
	} {
		m := &launch.Manifest{Placement: c.placement, CodeK: c.codeK, Members: make([]launch.Member, c.members)}
		require.Equal(t, c.want, placementOf(m))
	}
}

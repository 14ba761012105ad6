package members

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// tunedConfig has three voters and a profile.
func tunedConfig(version uint64, values ...string) protocol.Config {
	c := configOf(1, 2, 3)
	c.Profile = protocol.Profile{Version: version, Values: setting.MustParse(values...)}
	return c
}

// threeProfiles is a log with a founding profile of a second, one of three at 5, and one of half a second at 9; all
// with leases, and a drift of a tenth.
func threeProfiles(t *testing.T, m protocol.Mutant) *Configs {
	t.Helper()
	s, err := protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second, ElectionTimeout: 10 * time.Second,
		Mutant: m}.WithDefaults()
	require.NoError(t, err)
	c, err := Start(&protocol.Base{Config: tunedConfig(1, "lease-reads=true")}, &s, setting.Table{})
	require.NoError(t, err)
	require.NoError(t, c.Append(5, tunedConfig(2, "lease-reads=true", "election-timeout=3s")))
	require.NoError(t, c.Append(9, tunedConfig(3, "lease-reads=true", "election-timeout=500ms")))
	return &c
}

// A voter promises the longest from the last decided profile on, and a leader counts on the shortest from the newest
// one that the voter acknowledged on.
func TestTheStricterProfileCounts(t *testing.T) {
	c := threeProfiles(t, "")
	require.Equal(t, 500*time.Millisecond, c.Settings.ElectionTimeout, "the newest is active")
	for commit, want := range map[protocol.Index]time.Duration{0: 3 * time.Second, 8: 3 * time.Second,
		9: 500 * time.Millisecond} {
		got, leases := c.Promise(commit)
		require.True(t, leases)
		require.Equal(t, want, got, commit)
		require.Equal(t, 500*time.Millisecond, c.Strict(commit))
	}
	require.Equal(t, 450*time.Millisecond, c.Lease(2, 8, 8))

	require.True(t, c.Cut(9))
	require.Equal(t, 900*time.Millisecond, c.Lease(2, 4, 8), "a longer lease waits for the member")
	require.Equal(t, 2700*time.Millisecond, c.Lease(2, 5, 4), "whatever is decided")
	require.Zero(t, c.Lease(4, 4, 8), "it is no founding member, and has no configuration yet")
	c.Compact(6)
	require.Zero(t, c.Lease(2, 4, 8), "it may obey a profile that this log does not have any more")
	require.Equal(t, 2700*time.Millisecond, c.Lease(2, 5, 8))

	require.NoError(t, c.Append(12, tunedConfig(3, "election-timeout=3s")))
	require.Zero(t, c.Lease(2, 12, 8), "leases are off")
	_, leases := c.Promise(8)
	require.True(t, leases, "for a voter until that is decided")
	_, leases = c.Promise(12)
	require.False(t, leases)
}

// Each wrong variant gives a longer lease or a shorter promise.
func TestWrongVariantsOfTheStricterProfile(t *testing.T) {
	c := threeProfiles(t, MutantPromiseNewest)
	got, _ := c.Promise(8)
	require.Equal(t, 500*time.Millisecond, got)
	c = threeProfiles(t, MutantPromiseDecided)
	got, _ = c.Promise(0)
	require.Equal(t, time.Second, got)
	for m, want := range map[protocol.Mutant]time.Duration{MutantLeaseAtOnce: 2700 * time.Millisecond,
		MutantLeaseByMajority: 2700 * time.Millisecond, MutantLaggardCounts: 2700 * time.Millisecond, "": 0} {
		c = threeProfiles(t, m)
		c.Cut(9)
		c.Compact(5)
		require.Equal(t, want, c.Lease(2, 4, 5), m)
	}
	c = threeProfiles(t, MutantShortenLate)
	require.Equal(t, 2700*time.Millisecond, c.Lease(2, 9, 8))
}

// Configurations with the same profile share its settings, and a profile that cannot be had changes nothing.
func TestAProfileIsReadOnce(t *testing.T) {
	c := threeProfiles(t, "")
	before := c.Settings
	require.NoError(t, c.Append(10, tunedConfig(3, "lease-reads=true", "election-timeout=500ms")))
	require.Same(t, before, c.Settings)
	var unusable *protocol.ProfileError
	for _, bad := range []string{"no-such-setting=1", "placement=rs"} {
		next := tunedConfig(4, bad)
		require.ErrorAs(t, c.Usable(&next), &unusable, bad)
		require.ErrorAs(t, c.Append(11, next), &unusable, bad)
		require.ErrorAs(t, c.Install(&protocol.Base{Index: 20, Config: next}), &unusable, bad)
	}
	require.Equal(t, protocol.Index(10), c.At)
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Lease(2, 9, 8); c.Promise(8); c.Strict(8) }))
}

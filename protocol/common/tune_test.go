package common

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

func TestTuned(t *testing.T) {
	s, err := protocol.Settings{Self: 1, Heartbeat: time.Second, ElectionTimeout: 50 * time.Second,
		MaxClockDrift: 20 * time.Second, MaxFrameBytes: 7}.WithDefaults()
	require.NoError(t, err)
	same, err := Tuned(s, setting.Table{}, &protocol.Profile{Values: setting.MustParse("code-k=3")})
	require.NoError(t, err)
	require.Equal(t, s, same, "version 0 changes nothing")

	p := &protocol.Profile{Version: 1, Values: setting.MustParse("election-timeout=2s", "placement=code", "code-k=3",
		"lease-reads=true")}
	got, err := Tuned(s, setting.Table{}, p)
	require.NoError(t, err)
	require.Equal(t, 100*time.Millisecond, got.Heartbeat, "what a profile omits has its default")
	require.Equal(t, 2*time.Second, got.ElectionTimeout)
	require.Equal(t, 800*time.Millisecond, got.MaxClockDrift, "the ratio stays")
	require.Equal(t, 250*time.Millisecond, got.Stagger)
	require.Equal(t, protocol.PlacementCode, got.Placement)
	require.Equal(t, 3, got.MaxK)
	require.Equal(t, 7, got.MaxFrameBytes, "other settings stay")
	require.True(t, got.LeaseReads)

	for _, bad := range []string{"code-k=-1", "unknown=1", "election-timeout=1ms"} {
		_, err = Tuned(s, setting.Table{}, &protocol.Profile{Version: 1, Values: setting.MustParse(bad)})
		var unusable *protocol.ProfileError
		require.ErrorAs(t, err, &unusable, bad)
		require.Equal(t, uint64(1), unusable.Version)
	}
}

package slots

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// A core stops when its log gets a profile with another value of what no profile changes, and changes nothing. A leader
// refuses such a profile. Other settings follow.
func TestAKeptSettingDoesNotChange(t *testing.T) {
	shape := &setting.Setting[int]{Name: "shape", Change: setting.Sealed}
	own := setting.Table{Rows: []setting.Any{shape, &setting.Setting[bool]{Name: "quick", Change: setting.Local}}}
	tuning, cfg, err := NewTuning("test", own, protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second,
		ElectionTimeout: 10 * time.Second, Own: setting.MustParse("shape=3")}, nil)
	require.NoError(t, err)
	tuning.Keep(shape)
	config := func(version uint64, values ...string) *protocol.Config {
		return &protocol.Config{Profile: protocol.Profile{Version: version, Values: setting.MustParse(values...)}}
	}
	var out protocol.Effects
	changed, ok := tuning.Tune(&cfg, config(1, "shape=3", "quick=true"), &out)
	require.True(t, changed)
	require.True(t, ok)
	require.Equal(t, time.Second, cfg.ElectionTimeout, "the default of a profile")

	other, before := config(2, "shape=4"), cfg
	require.Equal(t, protocol.ReasonSettings, tuning.Refuses(&cfg, &config(1, "shape=3").Profile, &other.Profile))
	changed, ok = tuning.Tune(&cfg, other, &out)
	require.False(t, changed)
	require.False(t, ok)
	require.Equal(t, before, cfg)
	var unusable *protocol.ProfileError
	require.ErrorAs(t, out.Unusable, &unusable)
	require.ErrorContains(t, unusable, "shape 4, but this member's log has 3, which no profile changes")
}

package common

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol/setting"
)

// The flags of durations are numbers of milliseconds, as etcd's; members compare durations.
func TestMilliseconds(t *testing.T) {
	var v setting.Values
	flags := map[string]*setting.Flag{}
	all := Time.Flags(&v, false)
	for i := range all {
		flags[all[i].Name] = &all[i]
	}
	timeout := flags[ElectionTimeout.Name]
	require.Equal(t, "1000 uint", timeout.String()+" "+timeout.Type())
	require.Error(t, timeout.Set("1s"))
	require.Error(t, timeout.Set("-1"))
	require.NoError(t, timeout.Set("1500"))
	require.Equal(t, 1500*time.Millisecond, ElectionTimeout.In(v))
	require.Equal(t, [][2]string{{"election-timeout", "1.5s"}, {"lease-reads", "false"}}, Time.Agreed(v))
	require.Equal(t, []string{"--election-timeout=1500"}, Time.Args(v))
	require.NoError(t, timeout.Set(""), "the empty text is the default")
	require.True(t, v.IsZero())
}

func TestATimeoutHasThreeHeartbeats(t *testing.T) {
	for text, ok := range map[string]bool{"300ms": true, "299ms": false, "50s": true, "51s": false} {
		_, err := Settings.Complete(setting.MustParse("election-timeout=" + text))
		require.Equal(t, ok, err == nil, "%s: %v", text, err)
	}
	_, err := Settings.Complete(setting.MustParse("election-timeout=30ms", "heartbeat-interval=10ms"))
	require.NoError(t, err)
}

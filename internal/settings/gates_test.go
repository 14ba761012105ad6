package settings

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/server/v3/features"
)

// TestEachGateOfEtcdIsKnown: a gate as it is here says nothing, any other one is named.
func TestEachGateOfEtcdIsKnown(t *testing.T) {
	require.Equal(t, slices.Sorted(maps.Keys(features.DefaultEtcdServerFeatureGates)), slices.Sorted(maps.Keys(gates)))
	for name, g := range gates {
		for on, text := range map[bool]string{true: "=true", false: "=false"} {
			s, err := load(nil, "ETCD_FEATURE_GATES="+string(name)+text)
			require.NoError(t, err, name)
			if on == g.is {
				require.Empty(t, s.Ignored(), name)
				continue
			}
			require.Equal(t, []string{"--feature-gates " + string(name) + text + " does nothing: " + g.why}, s.Ignored())
		}
	}
	s, err := load([]string{"--feature-gates=AllAlpha=true"})
	require.NoError(t, err)
	require.Len(t, s.Ignored(), 3, "those that are not here")
	for wrong, want := range map[string]string{"Nonsense=true": "unrecognized feature gate",
		"CompactHashCheck": "missing bool value"} {
		_, err = load([]string{"--feature-gates=" + wrong})
		require.ErrorContains(t, err, want)
	}
}

func TestListenHTTP(t *testing.T) {
	s, err := load([]string{"--listen-client-http-urls=http://127.0.0.1:9,http://127.0.0.1:10"})
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.1:9", "http://127.0.0.1:10"}, s.ListenHTTP)
	require.Equal(t, s.ListenClient, s.AdvertiseClient)
	_, err = load([]string{"--listen-client-http-urls=http://localhost:2379"})
	require.ErrorContains(t, err, "localhost:2379 is already in --listen-client-urls")
}

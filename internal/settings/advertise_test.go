package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAdvertisedAddresses(t *testing.T) {
	for _, any := range []string{"http://0.0.0.0:7", "http://[::]:7", "http://:7"} {
		_, err := load([]string{"--listen-client-urls=" + any})
		require.ErrorContains(t, err, "--advertise-client-urls is required with --listen-client-urls "+any)
		s, err := load([]string{"--listen-client-urls=" + any, "--advertise-client-urls=http://db:7",
			"--listen-peer-urls=http://0.0.0.0:8"})
		require.NoError(t, err, "as in a container, alone")
		require.Equal(t, []string{"http://db:7"}, s.AdvertiseClient)
		require.Equal(t, []string{"http://localhost:8"}, s.AdvertisePeer)
		require.Equal(t, "default=http://localhost:8", s.InitialCluster)
	}
	s, err := load([]string{"--listen-client-urls=http://127.0.0.1:7"})
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.1:7"}, s.AdvertiseClient)
	_, err = load([]string{"--listen-peer-urls=http://0.0.0.0:8", "--initial-cluster=default=http://db:8"})
	require.ErrorContains(t, err, "--initial-advertise-peer-urls says http://localhost:8")
}

package braid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// Founders with different zones are of different clusters. Without zones a cluster has the id that it always had.
func TestZonesOfFounders(t *testing.T) {
	of := func(zones ...string) uint64 {
		return braid.ClusterIDOf([]braid.Member{{ID: 2, Name: "b", Zone: zones[1]}, {ID: 1, Name: "a", Zone: zones[0]}}, "x")
	}
	require.NotEqual(t, of("", ""), of("east", ""))
	require.NotEqual(t, of("east", "west"), of("west", "east"))
	require.EqualValues(t, uint64(15676744807814228278), of("", ""))
}

package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuorumsOfAManifest: majorities may be given for a protocol that has no other quorums, because "up
// --quorums=majority" has always been accepted.
func TestQuorumsOfAManifest(t *testing.T) {
	for text, own := range map[string]string{"": "", "majority": "", "4/2": "quorums=4/2", "what": "quorums=what"} {
		require.Equal(t, own, Quorums(text).String())
	}
	for _, protocol := range []string{"raft", "iss"} {
		line, err := Tolerance(protocol, Quorums("majority"), 3, nil)
		require.NoError(t, err)
		require.Empty(t, line)
	}
	_, err := Tolerance("raft", Quorums("4/2"), 5, nil)
	require.ErrorContains(t, err, "--quorums")
}

// TestToleranceByZones: three zones of one, two and three voters tolerate less than voters in turns do.
func TestToleranceByZones(t *testing.T) {
	of := func(zones ...string) string {
		line, err := Tolerance("multi-paxos", Quorums("zones:3/1/0"), 6, zones)
		require.NoError(t, err)
		return line
	}
	require.Contains(t, of(), "while 3 of them are down, and is replaced while 1 are")
	require.Contains(t, of("a", "b", "b", "c", "c", "c"), "while 2 of them are down, and is replaced while 1 are")
	_, err := Tolerance("multi-paxos", Quorums("zones:3/1/0"), 3, []string{"a", "b", "b"})
	require.ErrorContains(t, err, "the voters are in 2 zones")
}

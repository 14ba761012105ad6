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
		line, err := Tolerance(protocol, Quorums("majority"), 3)
		require.NoError(t, err)
		require.Empty(t, line)
	}
	_, err := Tolerance("raft", Quorums("4/2"), 5)
	require.ErrorContains(t, err, "--quorums")
}

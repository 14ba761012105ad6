package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFoundingZones: all members of a new cluster know all their zones, so a zone of one member alone is none of the
// founding. Where quorums do not need it, it comes later.
func TestFoundingZones(t *testing.T) {
	const three = "--initial-cluster=default=http://localhost:2380,b=http://h:1,c=http://h:2"
	const zones = "--initial-cluster-zones=default=x,c=z,b=y"
	founds := func(args ...string) error {
		s, err := load(append(args, three))
		require.NoError(t, err)
		return s.Founding()
	}
	s, err := load([]string{three, zones, "--zone=later"})
	require.NoError(t, err)
	peers, err := s.Peers()
	require.NoError(t, err)
	require.Equal(t, []string{"y", "z", "x"}, []string{peers[0].Zone, peers[1].Zone, peers[2].Zone})
	require.ErrorContains(t, s.Founding(), "--zone later: --initial-cluster-zones says that default is in x")

	require.NoError(t, founds(zones))
	require.NoError(t, founds(zones, "--zone=x"))
	require.NoError(t, founds("--zone=x"))
	require.NoError(t, founds("--zone=x", "--protocol=iss", "--quorums=grid:1"))
	require.NoError(t, founds("--protocol=iss", "--quorums=zones:3/1/0"))
	require.ErrorContains(t, founds("--zone=x", "--protocol=iss", "--quorums=zones:3/1/0"),
		"give the zones of all members in --initial-cluster-zones")

	s, err = load([]string{"--initial-cluster-zones=x=y", "--initial-cluster-state=existing"})
	require.NoError(t, err, "a running cluster has its own zones")
	peers, err = s.Peers()
	require.NoError(t, err)
	require.Empty(t, peers[0].Zone)
}

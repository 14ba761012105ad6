package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// TestSalvageRefusesAMemberWithoutItsState: a member that joined a cluster with an initial state, and was lost before
// it got that state, has only the later commands.
func TestSalvageRefusesAMemberWithoutItsState(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{Cluster: 7, Self: 1}
	dir, err := datadir.Open(datadir.Config{
		FS: fs, Dir: "/d", Cluster: 7, Self: 1, Join: true, Begin: order.Begin(1, false), Chance: func() uint64 { return 5 },
		Machine: discarding{}, Identity: o.identity(), Kind: member.LogKind{Core: "raft", Order: order.KindSingle},
	})
	require.NoError(t, err)
	none := func(string) func(*protocol.Recovered) []protocol.Entry { return nil }
	salvage := func() error {
		s, err := Salvage(SalvageOptions{FS: fs, Dir: "/d", Behind: none}, discarding{})
		if err == nil {
			require.NoError(t, s.Close())
		}
		return err
	}
	require.ErrorContains(t, salvage(), "in use")
	require.NoError(t, dir.Close())
	require.NoError(t, salvage())
	dir, err = datadir.Open(datadir.Config{FS: fs, Dir: "/d", Cluster: 7, Self: 1, Begin: order.Begin(1, false),
		Chance: func() uint64 { return 5 }, Machine: discarding{}, Identity: o.identity()})
	require.NoError(t, err)
	require.NoError(t, dir.RecordBirth("x"))
	require.NoError(t, dir.Close())
	err = salvage()
	require.ErrorAs(t, err, new(*member.DirError))
	require.ErrorContains(t, err, "use another member's")
}

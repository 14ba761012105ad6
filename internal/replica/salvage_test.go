package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
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

// TestSalvageBehindASeal: a member that stopped behind a seal, and has no snapshot from there. What its instance had
// behind the seal is void.
func TestSalvageBehindASeal(t *testing.T) {
	fs := vfs.NewMem()
	o := Options{Cluster: 7, Self: 1}
	config := datadir.Config{
		FS: fs, Dir: "/d", Cluster: 7, Self: 1, Begin: order.Begin(1, false), Chance: func() uint64 { return 5 },
		Members: []protocol.Member{{ID: 1}}, Profile: protocol.Profile{Version: 1}, Machine: discarding{},
		Identity: o.identity(), Kind: member.LogKind{Core: "raft", Order: order.KindSingle},
	}
	dir, err := datadir.Open(config)
	require.NoError(t, err)
	members := dir.Meta.Config
	seal := protocol.Seal{Instances: 1, Members: members, Profile: members.Profile.Next(members.Profile.Values, 0)}
	seal.Profile.Core = "multi-paxos"
	write := func(instance protocol.InstanceID, entries ...protocol.Entry) {
		for i, e := range entries {
			e.SealPayload()
			e.Seal(protocol.Index(i+1), 1, make([]byte, protocol.HeadSize))
			record := member.WALRecord(instance, &protocol.Record{Kind: protocol.RecordEntry, Entry: e})
			require.NoError(t, dir.Log.Append([]wal.Record{record}))
		}
	}
	noop := protocol.Entry{Kind: protocol.EntryNoop}
	write(1, noop, protocol.NewSeal(seal), noop, noop, noop, noop)
	begun := protocol.Base{Config: seal.Begin(&members), Ended: []protocol.EndedLog{{Instance: 1, Index: 2}}}
	base := member.WALRecord(2, &protocol.Record{Kind: protocol.RecordBase, Base: &begun})
	require.NoError(t, dir.Log.Append([]wal.Record{base}))
	write(2, noop, noop, noop)
	require.NoError(t, dir.Close())

	var cores []string
	behind := func(core string) func(*protocol.Recovered) []protocol.Entry {
		cores = append(cores, core)
		return nil
	}
	s, err := Salvage(SalvageOptions{FS: fs, Dir: "/d", Behind: behind}, discarding{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, []string{"raft", "multi-paxos"}, cores)
	require.Equal(t, member.LogKind{Core: "multi-paxos", Order: order.KindSingle}, s.Kind)
	require.EqualValues(t, 2+1+3, s.Position, "the seal takes effect at a position of its own")
	require.EqualValues(t, 3, s.Last.Index)
	require.Equal(t, 4+3, s.Behind, "of each log what is behind what is known to be decided")
}

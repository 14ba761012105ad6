package datadir

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// former is a guess that knows the names of one core.
type former struct{ oneCore }

func (former) Core(name string) string {
	if name == "lcr" {
		return "raft"
	}
	return name
}

// The log of a directory counts, and not the flags, once it has a profile: from the beginning on, in a snapshot, or in
// an entry. Other cores, orders and quorums are never taken for its own.
func TestTheLogSaysHowItBegan(t *testing.T) {
	lcr := member.LogKind{Core: "lcr", Order: order.KindSingle}
	flags := member.LogKind{Core: "raft", Order: order.KindNiagara}
	profile := protocol.Profile{Version: 1}
	for name, has := range map[string]struct {
		founded, inSnapshot, inEntry protocol.Profile
		counts                       bool
	}{
		"none":         {},
		"founded":      {founded: profile, counts: true},
		"in snapshot":  {inSnapshot: profile, counts: true},
		"in the log":   {inEntry: profile, counts: true},
		"another kind": {inEntry: protocol.Profile{}},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			who := Owner{Cluster: 7, Member: 1, Kind: lcr, Profile: has.founded.Version > 0}
			_, lock, err := Enter(fs, "/d", who, func() uint64 { return 5 })
			require.NoError(t, err)
			require.NoError(t, lock.Close())
			snapshots, err := OpenSnapshots(fs, filepath.Join("/d", snapshotDir))
			require.NoError(t, err)
			bornAs := func(flags member.LogKind) member.LogKind {
				born, err := BornAs(fs, "/d", flags, former{}, false)
				require.NoError(t, err)
				require.Equal(t, Born{Kind: born.Kind}, born)
				return born.Kind
			}
			require.Zero(t, bornAs(flags), "it has no log yet")
			meta := member.Bootstrap(order.Begin(1, false), []protocol.Member{{ID: 1}})
			meta.Config.Profile = has.inSnapshot
			require.NoError(t, snapshots.Write(SnapshotHeader{Meta: meta}, nil))
			log, err := wal.Open(wal.Options{FS: fs, Dir: "/d/" + logDir, SegmentBytes: 1 << 16})
			require.NoError(t, err)
			config := protocol.Config{Members: []protocol.Member{{ID: 1}}, Profile: has.inEntry}
			entry := protocol.Entry{Index: 1, Term: 1, Kind: protocol.EntryConfig,
				Payload: protocol.EncodeConfig(config)}
			entry.SealPayload()
			entry.Seal(1, 1, make([]byte, protocol.HeadSize))
			record := member.WALRecord(1, &protocol.Record{Kind: protocol.RecordEntry, Entry: entry})
			require.NoError(t, log.Append([]wal.Record{record}))
			require.NoError(t, log.Sync())
			require.NoError(t, log.Close())
			want := member.LogKind{}
			if has.counts {
				want = lcr
			}
			require.Equal(t, want, bornAs(flags))
			require.Zero(t, bornAs(lcr), "the flags are right")
			for _, other := range []member.LogKind{{Core: "iss", Order: order.KindSingle},
				{Core: "raft", Order: order.KindKeyed}, {Core: "raft", Order: order.KindSingle, Fragments: 2}} {
				require.Zero(t, bornAs(other), "%s", other)
			}
		})
	}
}

// Behind a seal flags say nothing of the log, whatever core they are for. Earlier programs do not open the directory,
// from the entry on, or the first instance behind it, or a snapshot from there.
func TestASealedLogSaysHowItBegan(t *testing.T) {
	profile := protocol.Profile{Version: 1}
	seal := protocol.Seal{Profile: profile.Next(profile.Values, 0), Instances: 1,
		Members: protocol.Config{Members: []protocol.Member{{ID: 1, Slot: 1}}, Slots: 1}}
	seal.Profile.Core = "multi-paxos"
	behind := seal.Begin(&protocol.Config{Members: seal.Members.Members, Profile: profile})
	for name, write := range map[string]func(t *testing.T, o *Opened){
		"an entry": func(t *testing.T, o *Opened) {
			e := protocol.NewSeal(seal)
			e.Seal(1, 1, make([]byte, protocol.HeadSize))
			record := member.WALRecord(1, &protocol.Record{Kind: protocol.RecordEntry, Entry: e})
			require.NoError(t, o.Log.Append([]wal.Record{record}))
		},
		"an instance": func(t *testing.T, o *Opened) {
			base := protocol.Base{Config: behind}
			record := member.WALRecord(2, &protocol.Record{Kind: protocol.RecordBase, Base: &base})
			require.NoError(t, o.Log.Append([]wal.Record{record}))
		},
		"a snapshot": func(t *testing.T, o *Opened) {
			meta := member.Bootstrap(order.Begin(1, false), nil)
			meta.Config, meta.Cursor.Position = behind, 3
			require.NoError(t, o.Snapshots.Write(SnapshotHeader{Meta: meta, HasState: true}, writeState("state")))
		},
		"a member that joins is told": nil,
	} {
		t.Run(name, func(t *testing.T) {
			fs, raft := vfs.NewMem(), member.LogKind{Core: "raft", Order: order.KindSingle}
			c := Config{FS: fs, Dir: "/d", Cluster: 7, Self: 1, Chance: func() uint64 { return 5 },
				Begin:   order.Begin(1, false),
				Members: []protocol.Member{{ID: 1}}, Profile: profile, Machine: &membertest.History{}, Kind: raft,
				Quorums: "majority", Sealed: write == nil, LogSegment: 1 << 16, BodySegment: 1 << 16}
			o, err := Open(c)
			require.NoError(t, err)
			other := member.LogKind{Core: "iss", Order: order.KindSingle}
			if write != nil {
				born, err := BornAs(fs, "/d", other, former{}, false)
				require.NoError(t, err)
				require.Zero(t, born)
				id, err := readIdentity(fs, "/d", 7, 1)
				require.NoError(t, err)
				require.Less(t, id.Format, formatSealed)
				write(t, o)
			}
			require.NoError(t, o.Close())
			for _, flags := range []member.LogKind{raft, {Core: "multi-paxos", Order: order.KindSingle}, other} {
				born, err := BornAs(fs, "/d", flags, former{}, false)
				require.NoError(t, err)
				require.Equal(t, Born{Kind: raft, Sealed: true, Quorums: "majority"}, born)
			}
			id, err := readIdentity(fs, "/d", 7, 1)
			require.NoError(t, err)
			require.Equal(t, formatSealed, id.Format)
		})
	}
}

// A directory that was opened as lcr and then as raft may have cells, although the last name has no lanes. Earlier
// programs do not open it.
func TestAnotherNameMayMeanCells(t *testing.T) {
	fs := vfs.NewMem()
	for _, core := range []string{"lcr", "lcr", "raft"} {
		who := Owner{Cluster: 7, Member: 1, Kind: member.LogKind{Core: core, Order: order.KindSingle},
			Guess: func() member.KindGuess { return former{} }}
		_, lock, err := Enter(fs, "/d", who, func() uint64 { return 5 })
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		id, err := readIdentity(fs, "/d", 7, 1)
		require.NoError(t, err)
		require.Equal(t, core == "raft", id.Cells)
		require.Equal(t, core == "raft", id.Format >= formatCells)
	}
}

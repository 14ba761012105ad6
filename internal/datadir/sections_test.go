package datadir

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// untouched is a state machine that must not be restored.
type untouched struct {
	nothing
	t *testing.T
}

func (u untouched) Restore(io.Reader) error {
	u.t.Error("the state was replaced")
	return nil
}

// A start continues from the newest snapshot's sections. If the program does not know them, or misses one, nothing
// starts, and nothing is changed: an earlier snapshot is not used instead.
func TestAStartKnowsTheSectionsOrRefuses(t *testing.T) {
	fs := vfs.NewMem()
	config := Config{FS: fs, Dir: "/d", Cluster: 7, Self: 1, Chance: func() uint64 { return 5 },
		Begin: order.Begin(1, false), Members: []protocol.Member{{ID: 1}}, Machine: nothing{}}
	open := func(derive member.Derive, sm member.StateMachine) (*Opened, error) {
		config.Derive, config.Machine = derive, sm
		return Open(config)
	}
	starts := func(derive member.Derive) *Opened {
		t.Helper()
		o, err := open(derive, nothing{})
		require.NoError(t, err)
		require.NoError(t, o.Close())
		return o
	}
	refused := func(what string, derive member.Derive) {
		t.Helper()
		_, err := open(derive, untouched{t: t})
		require.ErrorAs(t, err, new(*protocol.SectionError))
		require.ErrorContains(t, err, what)
	}
	starts(nil)
	starts(slotpaxos.Derive) // nothing is derived yet

	snaps, err := OpenSnapshots(fs, "/d/snapshots")
	require.NoError(t, err)
	meta := member.Bootstrap(config.Begin, config.Members)
	write := func(index protocol.Index, sections ...member.SectionState) error {
		meta.Cursor.Position = protocol.Position(index)
		meta.Cursor.Points = []order.Point{{Instance: 1, Index: index, Term: 1}}
		meta.Sections = sections
		return snaps.Write(SnapshotHeader{Meta: meta, HasState: true}, writeState("state"))
	}
	magic := func(index protocol.Position) string {
		b := make([]byte, 8)
		f, err := fs.Open(snaps.path(index))
		require.NoError(t, err)
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return string(b)
	}
	chain := slotpaxos.Derive(protocol.Config{})
	chain.Apply(&protocol.Entry{Index: 1, Term: 1, Kind: protocol.EntryBatch, Count: 1})
	section := member.SectionState{Instance: 1, Section: chain.Section()}

	require.NoError(t, write(5))
	require.Equal(t, snapMagic, magic(5), "as ever")
	refused(`"chain" of the snapshot is missing`, slotpaxos.Derive)
	starts(nil)

	require.NoError(t, write(7, section))
	require.Equal(t, snapMagic2, magic(7), "earlier programs refuse it")
	refused("is not known, nor is any other", nil)
	o := starts(slotpaxos.Derive)
	require.Equal(t, section.Section, o.Instances.InForce[0].Recovered.Base.Section, "the core is told")

	section.Version++
	require.NoError(t, write(9, section))
	refused("version 1 is", slotpaxos.Derive)

	section.Data = make([]byte, protocol.MaxSectionBytes+1)
	require.ErrorAs(t, write(11, section), new(*protocol.SectionError), "nobody could read it")
	all, err := snaps.Positions()
	require.NoError(t, err)
	require.Equal(t, []protocol.Position{0, 5, 7, 9}, all)
}

package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func batch(index protocol.Index, commands uint32) protocol.Entry {
	return protocol.Entry{Index: index, Term: 1, Kind: protocol.EntryBatch, Count: commands}
}

func TestAloneCountsCommandsNotEntries(t *testing.T) {
	o := NewNiagara(Begin(1, false))
	o.Add(1, []protocol.Entry{{Index: 1, Term: 1, Kind: protocol.EntryNoop}, batch(2, 3)})
	o.Add(1, []protocol.Entry{batch(3, 1)})
	require.NoError(t, o.Check())

	got := o.Next(nil)
	require.Len(t, got, 3)
	require.Equal(t, []protocol.Position{1, 2, 5}, []protocol.Position{got[0].First, got[1].First, got[2].First})
	require.Equal(t, Cursor{Position: 5, Points: []Point{{Instance: 1, Index: 3, Term: 1}}}, o.Cursor())
	require.Empty(t, o.Next(nil))
	require.NoError(t, o.Check())
}

func TestAloneResumesFromACursor(t *testing.T) {
	o := NewNiagara(Cursor{Position: 5, Points: []Point{{Instance: 1, Index: 3, Term: 1}}})
	o.Add(1, []protocol.Entry{batch(4, 2)})
	got := o.Next(nil)
	require.Equal(t, protocol.Position(6), got[0].First)
	require.Equal(t, protocol.Position(7), o.Cursor().Position)
}

func TestAloneInstallsWhatIsAhead(t *testing.T) {
	o := NewNiagara(Begin(1, false))
	o.Add(1, []protocol.Entry{batch(1, 1), batch(2, 1), batch(3, 4)})
	o.Install(Cursor{Position: 2, Points: []Point{{Instance: 1, Index: 2, Term: 1}}})
	require.NoError(t, o.Check())
	o.Add(1, []protocol.Entry{batch(2, 1), batch(3, 4), batch(4, 1)})
	got := o.Next(nil)
	require.Len(t, got, 2, "what was added after the snapshot's point is kept, what is repeated is not")
	require.Equal(t, protocol.Position(3), got[0].First)
	at := o.Cursor()
	o.Install(Cursor{Position: 2, Points: []Point{{Instance: 1, Index: 2, Term: 1}}})
	require.Equal(t, at, o.Cursor(), "a snapshot that is behind changes nothing")
	require.EqualValues(t, 4, o.Added(1))
}

func TestAloneRefusesGaps(t *testing.T) {
	o := NewNiagara(Begin(1, false))
	require.Panics(t, func() { o.Add(1, []protocol.Entry{batch(2, 1)}) })
	require.Panics(t, func() { NewNiagara(Begin(1, false)).Add(2, []protocol.Entry{batch(1, 1)}) })
}

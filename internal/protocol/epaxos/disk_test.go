package epaxos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// Nothing of a torn step counts: neither its entries nor the cells of its classes. A command that wrongly counted as
// executed would contradict others that were decided.
func TestATornStepDoesNotCount(t *testing.T) {
	entry := func(index protocol.Index, id ID) protocol.Entry {
		return seal(NewEntry(id, Touches{7}, nil), index, 1, countsOf(Component{id}))
	}
	class := classCell{step: 2, now: Vector{2}, before: Vector{1}}
	reached := progress{step: 1, index: 1, executed: Vector{1}, any: Vector{1}}
	rec := protocol.Recovered{
		Entries: []protocol.Entry{entry(1, ID{1, 1}), entry(2, ID{1, 2})},
		Cells: []protocol.Cell{
			{Number: classCells + 7, Data: class.append(nil)},
			{Number: progressCell, Data: reached.append(nil)},
		},
	}
	had, err := readDisk(&rec, "")
	require.NoError(t, err)
	require.Len(t, had.entries, 1)
	require.Equal(t, Vector{1}, had.executed.vector)
	require.Equal(t, Vector{1}, had.executed.index.Executed(Touches{7}))
	require.Equal(t, []uint16{7}, had.torn, "it is written again")
	broken, err := readDisk(&rec, MutantTornClass)
	require.NoError(t, err)
	require.Equal(t, Vector{2}, broken.executed.index.Executed(Touches{7}), "the mutant makes no difference")

	reached = progress{step: 2, index: 2, executed: Vector{2}, any: Vector{2}}
	rec.Cells[1].Data = reached.append(nil)
	had, err = readDisk(&rec, "")
	require.NoError(t, err)
	require.Len(t, had.entries, 2)
	require.Equal(t, Vector{2}, had.executed.index.Executed(Touches{7}))
	require.Empty(t, had.torn)

	rec.Entries = nil
	had, err = readDisk(&rec, "")
	require.NoError(t, err)
	require.Empty(t, had.executed.vector, "the log was begun anew, after a snapshot that stands for it")
}

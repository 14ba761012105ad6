package mapkv

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

func apply(t *testing.T, m *Map, commands ...[]byte) (results []any) {
	t.Helper()
	batch := make([]braid.Command, len(commands))
	for i, c := range commands {
		batch[i] = braid.Command{Position: braid.Position(i + 1), Data: bytes.Clone(c)}
	}
	require.NoError(t, m.Apply(batch))
	for i := range batch {
		clear(batch[i].Data) // it was valid until Apply returned
		results = append(results, batch[i].Result)
	}
	return results
}

func value(t *testing.T, m *Map, key string) string {
	t.Helper()
	v, ok := m.Get(key)
	require.True(t, ok, key)
	return string(v)
}

func snapshot(t *testing.T, m *Map) *bytes.Buffer {
	t.Helper()
	s, err := m.Snapshot()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.WriteTo(t.Context(), &out))
	require.NoError(t, s.Close())
	return &out
}

func TestMap(t *testing.T) {
	m := NewMap()
	results := apply(t, m, command(opPut, "a", []byte("1")), command(opPut, "b", nil), command(opPut, "a", []byte("2")),
		command(opAppend, "", []byte("only in the log")), command(opDelete, "c", nil), []byte{}, []byte{9, 0}, []byte{1, 200, 1, 'x'})
	require.Equal(t, []any{nil, nil, nil, braid.Position(4), nil, errCommand, errCommand, errCommand}, results)
	require.Equal(t, "2", value(t, m, "a"))
	require.Equal(t, "", value(t, m, "b"))
	apply(t, m, command(opDelete, "a", nil))
	_, ok := m.Get("a")
	require.False(t, ok)
	keys, appended := m.Len()
	require.Equal(t, 1, keys)
	require.Equal(t, uint64(1), appended)
}

// A snapshot is of the instant at which it was taken, whatever is applied while it is written.
func TestSnapshotStandsStill(t *testing.T) {
	m := NewMap()
	for i := range 1000 {
		apply(t, m, command(opPut, fmt.Sprint("key", i), []byte("before")))
	}
	apply(t, m, command(opAppend, "", nil))
	s, err := m.Snapshot()
	require.NoError(t, err)
	for i := range 1000 {
		if i%2 == 0 {
			apply(t, m, command(opPut, fmt.Sprint("key", i), []byte("after")), command(opPut, fmt.Sprint("new", i), nil))
		} else {
			apply(t, m, command(opDelete, fmt.Sprint("key", i), nil))
		}
	}
	var out bytes.Buffer
	require.NoError(t, s.WriteTo(t.Context(), &out))

	old := NewMap()
	apply(t, old, command(opPut, "what was there", nil))
	require.NoError(t, old.Restore(&out))
	keys, appended := old.Len()
	require.Equal(t, 1000, keys)
	require.Equal(t, uint64(1), appended)
	for i := range 1000 {
		require.Equal(t, "before", value(t, old, fmt.Sprint("key", i)))
	}
	require.NoError(t, NewMap().Restore(snapshot(t, m)))
	keys, _ = m.Len()
	require.Equal(t, 1000, keys)
	require.Equal(t, "after", value(t, m, "key0"))
	apply(t, old, command(opPut, "key1", []byte("again")))
	require.Equal(t, "again", value(t, old, "key1"))
}

func TestDamagedSnapshots(t *testing.T) {
	m := NewMap()
	apply(t, m, command(opPut, "a", []byte("value")), command(opPut, "b", []byte("value")))
	whole := snapshot(t, m).Bytes()
	for n := range whole {
		require.Error(t, NewMap().Restore(bytes.NewReader(whole[:n])), "%d bytes of %d", n, len(whole))
	}
	other := bytes.Clone(whole)
	other[0]++
	require.ErrorContains(t, NewMap().Restore(bytes.NewReader(other)), "format 2, this program knows 1")
	huge := append(bytes.Clone(whole[:3]), 0xff, 0xff, 0xff, 0x7f)
	require.ErrorContains(t, NewMap().Restore(bytes.NewReader(huge)), "at most 4096")
	require.Equal(t, "value", value(t, m, "a"))
}

func TestSnapshotStopsEarly(t *testing.T) {
	s, err := NewMap().Snapshot()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.WriteTo(ctx, &bytes.Buffer{}), context.Canceled)
}

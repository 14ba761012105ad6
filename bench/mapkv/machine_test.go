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
	var all []byte
	for i := range v.Chunks {
		require.Zero(t, v.Chunks[i].Body, key)
		all = append(all, v.Chunks[i].Bytes...)
	}
	require.Equal(t, int64(len(all)), v.Size, key)
	return string(all)
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
		command(opAppend, "", []byte("only in the log")), command(opDelete, "c", nil), []byte{}, []byte{9, 0},
		[]byte{1, 200, 1, 'x'})
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

// A snapshot has the state at the time when it was taken, whatever is applied while it is written.
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
	require.NoError(t, m.Apply([]braid.Command{with(command(opExtend, "a", nil), bodyRef(7, 1000))}))
	whole := snapshot(t, m).Bytes()
	for n := range whole {
		require.Error(t, NewMap().Restore(bytes.NewReader(whole[:n])), "%d bytes of %d", n, len(whole))
	}
	other := bytes.Clone(whole)
	other[0]++
	require.ErrorContains(t, NewMap().Restore(bytes.NewReader(other)), "format 3, this program knows 2")
	huge := append(bytes.Clone(whole[:3]), 0xff, 0xff, 0xff, 0x7f)
	require.ErrorContains(t, NewMap().Restore(bytes.NewReader(huge)), "at most 4096")
	for i, want := range map[int]string{0: "chunk of kind 2", 1: "no body"} {
		bad := []byte{version, 0, 1, 1, 'a', 1, byte(2 - i), 1, 1, 1, 1, 0, 1} // a body of 0 bytes
		require.ErrorContains(t, NewMap().Restore(bytes.NewReader(bad)), want)
	}
	require.Equal(t, "value", value(t, m, "b"))
}

func TestSnapshotStopsEarly(t *testing.T) {
	s, err := NewMap().Snapshot()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.WriteTo(ctx, &bytes.Buffer{}), context.Canceled)
}

// with returns a command with a body.
func with(c []byte, ref braid.BodyRef) braid.Command { return braid.Command{Data: c, Body: &ref} }

func live(t *testing.T, m *Map) []braid.BodyRef {
	t.Helper()
	var refs []braid.BodyRef
	require.NoError(t, m.LiveBodies(func(r braid.BodyRef) { refs = append(refs, r) }))
	return refs
}

// Every body is alive exactly as long as a value refers to it; after that it is returned once, when it is in no
// snapshot any more.
func TestBodiesOfTheMap(t *testing.T) {
	m := NewMap()
	ref := func(i uint64) braid.BodyRef { return bodyRef(i, 100) }
	batch := []braid.Command{
		with(command(opPut, "a", nil), ref(1)), with(command(opExtend, "a", nil), ref(2)),
		{Data: command(opExtend, "a", []byte("inline"))},
		with(command(opPut, "b", nil), ref(3)), with(command(opPut, "b", nil), ref(4)), // replaces 3
		with(command(opExtend, "c", nil), ref(5)), {Data: command(opDelete, "c", nil)}, // drops 5
		with(command(opAppend, "", nil), ref(6)), with([]byte{9, 9}, ref(7)), // belong to no value
	}
	require.NoError(t, m.Apply(batch))
	require.ElementsMatch(t, []braid.BodyRef{ref(1), ref(2), ref(4)}, live(t, m))
	v, _ := m.Get("a")
	require.Equal(t, Value{[]Chunk{{Body: ref(1)}, {Body: ref(2)}, {Bytes: []byte("inline")}}, 206}, v)

	require.Empty(t, m.Dropped(5))
	require.NoError(t, m.Apply([]braid.Command{{Data: command(opDelete, "b", nil)}}))
	require.Empty(t, m.Dropped(6), "a snapshot that was under way may hold them")
	require.ElementsMatch(t, []braid.BodyRef{ref(3), ref(5), ref(6), ref(7)}, m.Dropped(7))
	require.Empty(t, m.Dropped(7))
	require.Equal(t, []braid.BodyRef{ref(4)}, m.Dropped(8))
	require.Empty(t, m.Dropped(100))

	fresh := NewMap()
	require.NoError(t,
		fresh.Apply([]braid.Command{with(command(opPut, "z", nil), ref(9)), {Data: command(opDelete, "z", nil)}}))
	require.NoError(t, fresh.Restore(snapshot(t, m)))
	require.ElementsMatch(t, []braid.BodyRef{ref(1), ref(2)}, live(t, fresh))
	got, _ := fresh.Get("a")
	require.Equal(t, v, got)
	require.Empty(t, fresh.Dropped(0))
	require.Empty(t, fresh.Dropped(2), "what was dropped before belongs to the state that was replaced")
}

// A snapshot does not see data that is appended to a value while it is written.
func TestAppendBesideASnapshot(t *testing.T) {
	m := NewMap()
	apply(t, m, command(opExtend, "a", []byte("1")), command(opExtend, "a", []byte("2")),
		command(opExtend, "a", []byte("3")))
	s, err := m.Snapshot()
	require.NoError(t, err)
	apply(t, m, command(opExtend, "a", []byte("4")))
	var out bytes.Buffer
	require.NoError(t, s.WriteTo(t.Context(), &out))
	old := NewMap()
	require.NoError(t, old.Restore(&out))
	apply(t, old, command(opExtend, "a", []byte("x")))
	require.Equal(t, "123x", value(t, old, "a"))
	require.Equal(t, "1234", value(t, m, "a"))
}

func TestValuesEnd(t *testing.T) {
	m := NewMap()
	large := func(size uint32) braid.BodyRef { return braid.BodyRef{Instance: 1, Index: 1, Size: size} }
	batch := []braid.Command{
		with(command(opExtend, "a", nil), large(MaxTotal)), {Data: command(opExtend, "a", []byte("x"))},
		with(command(opExtend, "a", nil), large(1)),
	}
	require.NoError(t, m.Apply(batch))
	require.Nil(t, batch[0].Result)
	require.ErrorIs(t, batch[1].Result.(error), ErrValueFull)
	require.ErrorIs(t, batch[2].Result.(error), ErrValueFull)
	require.Equal(t, []braid.BodyRef{large(MaxTotal)}, live(t, m))
	require.Empty(t, m.Dropped(0))
	require.Equal(t, []braid.BodyRef{large(1)}, m.Dropped(2), "what was refused is dropped")
	short := command(opExtend, "b", nil)
	for range MaxChunks {
		require.Nil(t, apply(t, m, short)[0])
	}
	require.Equal(t, ErrValueFull, apply(t, m, short)[0])
}

package protocol

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// ranged is a group of two batches of a lane, at its place in the log.
func ranged(t *testing.T, lane Lane, first uint64, payload string) Entry {
	batches := make([]Entry, 2)
	for i := range batches {
		b := Entry{Kind: EntryBatch, ID: ProposalID{Session: lane, Seq: 7 + uint64(i)}, Count: 1, Payload: []byte(payload)}
		b.SealPayload()
		b.Seal(Index(first+uint64(i)), 0, make([]byte, HeadSize))
		batches[i] = b
	}
	g := NewRange(lane, batches)
	g.Seal(1234, 5, make([]byte, HeadSize))
	r, ok := g.Range()
	require.True(t, ok)
	require.Equal(t, LaneRange{lane, first, first + 1}, r)
	return g
}

// A signal identifies the group at a place, in a few bytes, and no other group.
func TestSignals(t *testing.T) {
	lane := Lane{Member: 3, Incarnation: 1 << 60}
	group := ranged(t, lane, 40, "as long as you like, it makes no difference")
	s := NewSignal(&group)
	require.Nil(t, s.Head())
	require.Less(t, s.Bytes(), 40)
	m := Message{Type: FirstOwnType, From: 1, To: 2, Entries: []Entry{group, s, s}}
	b := m.AppendHead(nil)
	for i := range m.Entries {
		b = append(append(b, m.Entries[i].Head()...), m.Entries[i].Payload...)
	}
	require.Len(t, b, m.Size())
	got, err := DecodeMessage(b, &Codec{Types: make([]Traits, 1)})
	require.NoError(t, err)
	require.Len(t, got.Entries, 3)
	require.Equal(t, s, got.Entries[1])
	require.Equal(t, s, got.Entries[2])

	again := ranged(t, lane, 40, "as long as you like, it makes no difference")
	require.True(t, got.Entries[1].Means(&again))
	for what, other := range map[string]Entry{
		"another payload": ranged(t, lane, 40, "as long as you like, it makes no Difference"),
		"another range":   ranged(t, lane, 41, "as long as you like, it makes no difference"),
		"another lane":    ranged(t, Lane{Member: 3, Incarnation: 2}, 40, "as long as you like, it makes no difference"),
	} {
		require.False(t, s.Means(&other), what)
	}
}

// What is cut or damaged is an error, whatever the damage is.
func TestDamagedSignals(t *testing.T) {
	group := ranged(t, Lane{Member: 3, Incarnation: 9}, 1, "x")
	s := NewSignal(&group)
	for i := range s.Payload {
		_, _, err := DecodeEntry(s.Payload[:i], true)
		require.Error(t, err, "cut at %d", i)
		damaged := append([]byte(nil), s.Payload...)
		damaged[i] ^= 0x81
		_, _, err = DecodeEntry(damaged, true)
		require.Error(t, err, "damaged at %d", i)
	}
	long := append([]byte(nil), s.Payload[:signalHead]...)
	for range 12 {
		long = append(long, 0xff)
	}
	binary.LittleEndian.PutUint32(long, Digest(long[4:]))
	_, _, err := DecodeEntry(long, true)
	require.Error(t, err, "a number without an end")
	fake := Entry{Kind: EntrySignal, Payload: long}
	require.False(t, fake.Means(&group))
}

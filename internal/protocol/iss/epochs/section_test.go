package epochs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

var _ protocol.Derived = (*History)(nil)

// The same log gives the same section at each slot: whether no-ops are left out or not, and whether the history
// continued after each slot or was restored there. A core that has also passed the no-ops is equal to all others
// after the next value.
func TestSameLogSameSection(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 7))
		set, voters := randomSettings(rng), randomIDs(rng, 1+rng.IntN(6))
		log := randomLog(rng, set, voters, 15)
		begin := func() *History { return New(set, configOf(voters, nil)) }
		all, some, passed, restored := begin(), begin(), begin(), begin()
		for i := range log {
			e := &log[i]
			all.Apply(e)
			restored.Apply(e)
			passed.Apply(e)
			if e.Kind != protocol.EntryNoop {
				some.Apply(e)
				require.Equal(t, all.Section(), passed.Section())
			}
			passed.Pass(e.Index)
			require.Equal(t, all.Section(), some.Section())
			restored = restoreSection(t, restored)
			require.Equal(t, all, restored)
			require.NoError(t, passed.Check())
		}
		restored = restoreSection(t, restored)
		restored.Pass(protocol.Index(len(log)))
		require.Equal(t, passed, restored, "a core that begins with a snapshot passes what was left out before it")
	}
}

// restored is another history, restored from the section of this one.
func restoreSection(t *testing.T, h *History) *History {
	s := h.Section()
	require.NoError(t, s.Valid())
	fresh := New(h.set, protocol.Config{})
	require.NoError(t, fresh.Restore(s))
	return fresh
}

// A section of a cluster of the largest size is not too large.
func TestLargestSection(t *testing.T) {
	n := 1
	for len(protocol.EncodeConfig(configOf(manyIDs(2*n), nil))) <= protocol.MaxConfigBytes {
		n *= 2
	}
	h := New(Default(), configOf(manyIDs(n), nil))
	h.Pass(h.Epoch().Last * 3)
	require.Greater(t, n, MaxLeaders)
	require.NoError(t, restoreSection(t, h).Check())
}

// manyIDs are the ids with the longest encoding.
func manyIDs(n int) (ids []protocol.MemberID) {
	for i := range n {
		ids = append(ids, ^protocol.MemberID(0)-protocol.MemberID(n-i))
	}
	return ids
}

func TestNothingKnown(t *testing.T) {
	h := New(Default(), protocol.Config{})
	require.Nil(t, h.Epoch())
	require.NoError(t, h.Check())
	require.Equal(t, protocol.Section{}, h.Section())
	leader, since := h.Lead()
	require.Zero(t, uint64(leader)+since)
	require.ErrorAs(t, h.Restore(protocol.Section{}), new(*protocol.SectionError))
	require.Panics(t, func() { h.Pass(1) })
	require.Panics(t, func() {
		h.Apply(&protocol.Entry{Index: 1, Kind: protocol.EntryConfig,
			Payload: protocol.EncodeConfig(configOf(manyIDs(3), nil))})
	})
}

// small are settings with which a fuzzer soon comes to the end of an epoch.
var small = Settings{MinSlots: 4, MaxSlots: 16, Policy: Combined, Ban: 1, MaxBan: 8}

// sections are examples that histories encoded.
func sections() (list []protocol.Section) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 8))
		voters := randomIDs(rng, 1+int(seed))
		h := New(small, configOf(voters, nil))
		for _, e := range randomLog(rng, small, voters, 12) {
			if h.Apply(&e); rng.IntN(12) == 0 {
				list = append(list, h.Section())
			}
		}
	}
	return list
}

// refuses tries to restore arbitrary bytes. Accepted bytes are encoded again as they were, and the history continues
// from there.
func refuses(t *testing.T, version uint32, data []byte) bool {
	h := New(small, protocol.Config{})
	err := h.Restore(protocol.Section{Name: SectionName, Version: version, Data: data})
	if err != nil {
		require.ErrorAs(t, err, new(*protocol.SectionError))
		require.Nil(t, h.Epoch(), "the history is what it was")
		return true
	}
	require.NoError(t, h.Check())
	require.Equal(t, string(data), string(h.Section().Data))
	for range 3 {
		h.Apply(&protocol.Entry{Index: h.Next(), Kind: protocol.EntryBatch})
		h.Pass(h.Epoch().Last)
		require.NoError(t, h.Check())
	}
	return false
}

func TestRestoreRefuses(t *testing.T) {
	list := sections()
	require.Greater(t, len(list), 10)
	require.True(t, slices.ContainsFunc(list, func(s protocol.Section) bool { return s.Version == sectionVersion }))
	require.True(t, slices.ContainsFunc(list, func(s protocol.Section) bool { return s.Version == zonesVersion }))
	for _, s := range list {
		for n := range s.Data {
			require.True(t, refuses(t, s.Version, s.Data[:n]), "%d bytes of %x", n, s.Data)
			for _, b := range []byte{0, 1, s.Data[n] + 1, s.Data[n] - 1, s.Data[n] ^ 0x80, 255} {
				changed := append([]byte(nil), s.Data...)
				changed[n] = b
				refuses(t, s.Version, changed)
			}
		}
		require.True(t, refuses(t, s.Version, append(s.Data[:len(s.Data):len(s.Data)], 0)))
		require.False(t, refuses(t, s.Version, s.Data))
		other := small
		other.MaxBan++
		require.ErrorContains(t, New(other, protocol.Config{}).Restore(s), "settings")
		for _, strange := range []protocol.Section{{Name: "lanes", Version: s.Version, Data: s.Data},
			{Name: SectionName, Version: 3 - s.Version, Data: s.Data}, {Name: SectionName, Version: 3, Data: s.Data}} {
			require.ErrorAs(t, New(small, protocol.Config{}).Restore(strange), new(*protocol.SectionError))
		}
	}
}

// Another encoding of the same history is refused: members with equal histories must have equal snapshots.
func TestOtherBytesAreRefused(t *testing.T) {
	h := New(small, configOf([]protocol.MemberID{1}, nil))
	s := h.Section()
	at := len(h.set.numbers(nil))
	require.Equal(t, byte(4), s.Data[at])
	longer := append(append(append([]byte(nil), s.Data[:at]...), 0x84, 0), s.Data[at+1:]...)
	s.Data = longer
	require.ErrorContains(t, h.Restore(s), "other bytes")
}

func FuzzRestore(f *testing.F) {
	for _, s := range sections() {
		f.Add(s.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { refuses(t, sectionVersion, data); refuses(t, zonesVersion, data) })
}

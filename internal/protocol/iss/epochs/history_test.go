package epochs

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestSettingsMustBeValid(t *testing.T) {
	require.PanicsWithValue(t, "epochs: policy 4 is not known", func() {
		New(Settings{MinSlots: 4, MaxSlots: 4, Policy: policies}, protocol.Config{})
	})
}

func TestApplyInOrder(t *testing.T) {
	h := New(Default(), configOf([]protocol.MemberID{1, 2, 3}, nil))
	h.Apply(&protocol.Entry{Index: 5, Kind: protocol.EntryBatch})
	require.PanicsWithValue(t, "epochs: slot 5 after slot 5",
		func() { h.Apply(&protocol.Entry{Index: 5, Kind: protocol.EntryBatch}) })
	h.Apply(&protocol.Entry{Index: 5, Kind: protocol.EntryNoop})
	h.Pass(3)
	require.EqualValues(t, 6, h.Next())
	require.Panics(t, func() { h.Apply(&protocol.Entry{Index: 6, Kind: protocol.EntryConfig, Payload: []byte("{}")}) })
}

// Entries that an order may leave out have no effect: they are no value, and do not advance the history.
func TestNothingFollowsFromWhatMayBeLeftOut(t *testing.T) {
	h := New(Default(), configOf([]protocol.MemberID{1, 2, 3}, nil))
	before := *h
	for _, kind := range []protocol.EntryKind{protocol.EntryNoop, protocol.EntrySkip, protocol.EntryReshape} {
		h.Apply(&protocol.Entry{Index: 1, Kind: kind})
		require.Equal(t, before, *h)
	}
}

// Check finds these errors.
func TestCheck(t *testing.T) {
	for why, harm := range map[string]func(*History){
		"behind its epoch":              func(h *History) { h.next = h.epoch.First - 1 },
		"beyond its epoch":              func(h *History) { h.next = h.epoch.Last + 1 },
		"more slots than may be":        func(h *History) { h.slots = 2 * h.set.MaxSlots },
		"a number that is no power":     func(h *History) { h.slots = h.set.MinSlots + 4 },
		"the first leader is of later":  func(h *History) { h.since = h.epoch.Number + 1 },
		"nobody votes next":             func(h *History) { h.voters = nil },
		"a voter of whom nothing known": func(h *History) { h.records = h.records[1:] },
		"another's record":              func(h *History) { h.records[0].id++ },
		"more values than slots":        func(h *History) { h.loads[0] = 9 },
		"the end before it has come":    func(h *History) { h.ended[0] = true },
		"suspected in an epoch to come": func(h *History) { h.records[0].suspected = h.epoch.Number },
		"a ban that was never given":    func(h *History) { h.records[1].suspected, h.records[1].penalty = 0, 8 },
		"a longer ban than the longest": func(h *History) { h.records[1].penalty = 1 << 20 },
		"more left than was given":      func(h *History) { h.records[1].left = 200 },
		"no share":                      func(h *History) { h.records[0].share = 0 },
		"a share that is no power":      func(h *History) { h.records[0].share = 3 },
		"another share than all":        func(h *History) { h.set.EqualShares = true },
		"a leader that is banned": func(h *History) {
			h.records[0] = record{id: 1, suspected: 1, penalty: 8, left: 1,
				share: 1}
		},
		"a leader that does not vote": func(h *History) {
			h.epoch = newEpoch(2, 49, 16, h.epoch.Voters, []protocol.MemberID{1, 7}, []uint8{1, 1})
		},
		"an epoch that begins too early": func(h *History) { h.epoch.First = 1 },
	} {
		h := New(Default(), configOf([]protocol.MemberID{1, 2, 3}, nil))
		for i := protocol.Index(1); i <= 48; i++ {
			if h.Epoch().Leaders[h.Epoch().Place(i)] != 2 {
				h.Apply(&protocol.Entry{Index: i, Kind: protocol.EntryEmpty})
			}
		}
		require.NoError(t, h.Check())
		require.Equal(t, []protocol.MemberID{1, 3}, h.Epoch().Leaders)
		harm(h)
		require.Error(t, h.Check(), why)
	}
}

// A voter that does not lead leads again in the epoch that BannedUntil returns, and in none before it, if no voter is
// suspected meanwhile.
func TestBannedUntil(t *testing.T) {
	for policy := range policies {
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, uint64(policy)))
			h := New(Settings{MinSlots: 4, MaxSlots: 4, Policy: policy, Ban: 2, MaxBan: 16},
				configOf([]protocol.MemberID{1, 2, 3, 4, 5}, nil))
			for range 12 {
				endEpoch(h, protocol.MemberID(1+rng.IntN(7))) // 6 and 7: none fails
			}
			until := map[protocol.MemberID]uint64{}
			for _, id := range h.Epoch().Voters {
				until[id] = h.BannedUntil(id)
				require.Equal(t, h.Epoch().Leads(id), until[id] == 0, "%s, seed %d: voter %s", policy, seed, id)
			}
			for range 40 {
				for id, epoch := range until { // any order
					require.Equal(t, h.Epoch().Number >= epoch, h.Epoch().Leads(id), "%s, seed %d: voter %s in epoch %d, until %d",
						policy, seed, id, h.Epoch().Number, epoch)
				}
				endEpoch(h, 0)
			}
		}
	}
}

// endEpoch ends the segments of all leaders of an epoch with a value, except for one.
func endEpoch(h *History, fails protocol.MemberID) {
	e := h.Epoch()
	for i := h.Next(); i <= e.Last; i++ {
		if e.Leaders[e.Place(i)] != fails {
			h.Apply(&protocol.Entry{Index: i, Kind: protocol.EntryEmpty})
		}
	}
	h.Pass(e.Last)
}

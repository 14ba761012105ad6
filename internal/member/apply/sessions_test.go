package apply

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

func proposal(member, incarnation, seq, low uint64, count uint32) *protocol.Entry {
	return &protocol.Entry{
		Kind: protocol.EntryBatch, Count: count, Low: low,
		ID: protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(member), Incarnation: incarnation},
			Seq: seq},
	}
}

func TestSessionsAdmitOnce(t *testing.T) {
	s := NewSessions(nil)
	require.True(t, s.Admit(1, proposal(1, 1, 1, 1, 3)))
	require.False(t, s.Admit(1, proposal(1, 1, 1, 1, 3)), "the same batch again")
	require.True(t, s.Admit(1, proposal(1, 1, 9, 1, 1)), "ahead of a gap")
	require.True(t, s.Admit(1, proposal(1, 1, 4, 1, 5)), "fills the gap")
	require.Equal(t, []member.Span{{From: 1, To: 10}}, s.States()[0].Done)
	require.True(t, s.Admit(1, proposal(2, 1, 1, 1, 1)), "another member's session")
	require.True(t, s.Admit(1, proposal(1, 1, 20, 15, 1)))
	require.False(t, s.Admit(1, proposal(1, 1, 12, 12, 2)), "below Low: given up, must not take effect late")
	require.NoError(t, s.Check())
}

func TestSessionsRefuseAnEarlierLife(t *testing.T) {
	s := NewSessions(nil)
	require.True(t, s.Admit(1, proposal(1, 1, 1, 1, 1)))
	require.True(t, s.Admit(1, proposal(1, 2, 1, 1, 1)), "a new life counts from 1 again")
	require.False(t, s.Admit(1, proposal(1, 1, 2, 1, 1)), "a late proposal of the old life")
}

// TestSessionsOfEarlierPrograms: there each instance had numbers of its own. Logs and snapshots of
// that time have the same meaning forever.
func TestSessionsOfEarlierPrograms(t *testing.T) {
	s := NewSessions(nil)
	require.True(t, s.Admit(1, proposal(1, 1, 1, 1, 3)))
	require.True(t, s.Admit(2, proposal(1, 1, 1, 1, 3)), "another batch of the same member")
	require.False(t, s.Admit(2, proposal(1, 1, 1, 1, 3)))
	require.True(t, s.Admit(2, proposal(1, 2, 1, 1, 1)), "a new life in one instance")
	require.True(t, s.Admit(1, proposal(1, 1, 4, 1, 1)), "says nothing about another")
	require.NoError(t, s.Check())
	content, err := json.Marshal(s.States())
	require.NoError(t, err)
	require.JSONEq(t, `[{"instance":1,"session":{"Member":1,"Incarnation":1},"low":1,"done":[{"from":1,"to":5}]},
		{"instance":2,"session":{"Member":1,"Incarnation":2},"low":1,"done":[{"from":1,"to":2}]}]`, string(content))
	var states []member.SessionState
	require.NoError(t, json.Unmarshal(content, &states))
	s = NewSessions(states)
	require.False(t, s.Admit(1, proposal(1, 1, 4, 1, 1)), "a snapshot keeps them apart")
	s.Retire([]protocol.InstanceID{2, 5})
	require.Len(t, s.States(), 1)
	require.EqualValues(t, 2, s.States()[0].Instance)
}

// This compares with a plain set. Batches are repeated, reordered and given up.
func TestSessionsAgainstASet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, took := NewSessions(nil), map[uint64]bool{}
		var batches []*protocol.Entry
		seq, low := uint64(1), uint64(1)
		for range 300 {
			if rng.IntN(3) > 0 || len(batches) == 0 {
				e := proposal(7, 1, seq, low, uint32(1+rng.IntN(4)))
				seq += uint64(e.Count)
				batches = append(batches, e)
			}
			e := batches[max(0, len(batches)-1-rng.IntN(6))]
			if rng.IntN(10) == 0 {
				low = e.ID.Seq
			}
			maxLow := uint64(0)
			if len(s.states) > 0 {
				maxLow = s.states[0].Low
			}
			want := !took[e.ID.Seq] && e.ID.Seq >= max(maxLow, e.Low)
			require.Equal(t, want, s.Admit(1, e), "seed %d seq %d", seed, e.ID.Seq)
			took[e.ID.Seq] = took[e.ID.Seq] || want
			require.NoError(t, s.Check())
			if rng.IntN(20) == 0 {
				s = NewSessions(s.States())
			}
		}
	}
}

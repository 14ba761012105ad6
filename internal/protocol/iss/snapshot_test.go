package iss_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// TestAProposerStepsDownForASnapshot: member 1 of five proposes a command in its first slot, and only 2 accepts it. The
// others have something else decided there, and 1 learns of that by a snapshot that ends within the epoch. It must not
// tell 2 that the slot is decided, because 2 would take the command for the decision.
func TestAProposerStepsDownForASnapshot(t *testing.T) {
	require.Empty(t, afterSnapshot(t, ""))
	require.Len(t, afterSnapshot(t, iss.MutantSnapshotKept), 1)
}

// afterSnapshot is what member 2 takes for decided.
func afterSnapshot(t *testing.T, m protocol.Mutant) (decided []protocol.Entry) {
	config := protocol.Config{}
	for id := range protocol.MemberID(5) {
		config.Members = append(config.Members, protocol.Member{ID: id + 1})
	}
	start := factory(func(s *protocol.Settings) { s.Mutant = m })
	cores := map[protocol.MemberID]protocol.Core{}
	step := func(id protocol.MemberID, in protocol.Input) (sent []*protocol.Message) {
		for in != nil {
			out := protocol.Effects{}
			cores[id].Step(conformance.Pace, in, &out)
			require.NoError(t, cores[id].Check())
			sent, decided = append(sent, append(out.Send, out.Release...)...), append(decided, out.Commit...)
			if in = nil; len(out.Persist) > 0 {
				in = protocol.Persisted{Seq: out.Seq}
			}
		}
		return sent
	}
	for id := range protocol.MemberID(2) {
		core, err := start(protocol.Session{Member: id + 1}, protocol.Recovered{Base: protocol.Base{Config: config}})
		require.NoError(t, err)
		cores[id+1] = core
		step(id+1, protocol.Tick{Random: uint64(id + 1)})
	}
	deliver := func(sent []*protocol.Message) {
		for _, m := range sent {
			if m.To == 2 {
				step(2, m)
			}
		}
	}
	command := conformance.NewNet(t, 1, 1, iss.Codec, start).Batch(1, 10)
	deliver(step(1, protocol.Propose{Entries: []protocol.Entry{command}}))

	history := epochs.New(short, config)
	history.Pass(1)
	base := protocol.Base{Index: 1, Term: 1, Config: config, Section: history.Section()}
	deliver(step(1, protocol.SnapshotReceived{From: 3, Base: base}))
	require.EqualValues(t, 1, cores[1].Status().Commit)
	return decided
}

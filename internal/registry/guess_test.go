package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Every core says what it writes, and its sections are found under the name that it says. An empty directory may be of
// each.
func TestEveryCoreSaysWhatItWrites(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	config.Number()
	for _, c := range registry.Cores() {
		require.NotNil(t, c.Wrote, c.Name)
		if c.Section == "" { // snapshots have none, or not always
			continue
		}
		d := c.Derive(setting.Values{}, config)
		require.Equal(t, c.Section, d.Section().Name, c.Name)
	}
	require.Contains(t, registry.NewGuess().Cores(order.KindSingle), "iss")
	require.NotContains(t, registry.NewGuess().Cores(order.KindKeyed), "iss")
}

// What a vote, a cell or a section says outweighs all that other cores could have written too.
func TestAGuess(t *testing.T) {
	vote := &protocol.Record{Kind: protocol.RecordState, State: protocol.HardState{Term: 300, Vote: 2}}
	noop := &protocol.Record{Kind: protocol.RecordEntry,
		Entry: protocol.Entry{Index: 1, Term: 300, Kind: protocol.EntryNoop}}
	batch := &protocol.Record{Kind: protocol.RecordEntry,
		Entry: protocol.Entry{Index: 2, Term: 300, Kind: protocol.EntryBatch, Count: 1}}
	generation := &protocol.Record{Kind: protocol.RecordEntry,
		Entry: protocol.Entry{Index: 3, Term: 300, Kind: protocol.EntryGeneration}}
	promise := &protocol.Record{Kind: protocol.RecordCell,
		Cell: protocol.Cell{Number: 0, Data: []byte{1, 1, 0, 0, 0, 0, 0, 0}}}
	for name, c := range map[string]struct {
		records  []*protocol.Record
		sections []string
		want     []string
	}{
		"a vote alone":            {[]*protocol.Record{vote, noop}, nil, []string{"raft", "lcr"}},
		"commands, no generation": {[]*protocol.Record{vote, noop, batch}, nil, []string{"raft"}},
		"a generation":            {[]*protocol.Record{vote, noop, batch, generation}, nil, []string{"lcr"}},
		"a promise":               {[]*protocol.Record{promise, batch}, nil, []string{"multi-paxos"}},
		"a section":               {nil, []string{"epochs"}, []string{"iss"}},
		"a snapshot without one":  {[]*protocol.Record{vote}, []string{""}, []string{"raft"}},
	} {
		g := registry.NewGuess()
		for _, r := range c.records {
			g.Record(r)
		}
		for _, s := range c.sections {
			g.Snapshot(s)
		}
		require.Equal(t, c.want, g.Cores(order.KindSingle), name)
	}
}

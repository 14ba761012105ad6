package multipaxos_test

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

func TestScripts(t *testing.T) {
	conformance.Scripts(t, "testdata/multi", multipaxos.Codec, factory, conformance.Options{}, func(st protocol.Status) string {
		return fmt.Sprintf("%s ballot %s log %d…%d durable %d leader %s", st.Role, multipaxos.Ballot(st.Term), st.First, st.Last, st.Durable, st.Leader)
	})
}

// scripted are epochs of four slots for each leader.
var scripted = epochs.Settings{MinSlots: 16, MaxSlots: 16, Policy: epochs.Combined, Ban: 2, MaxBan: 8}

func TestISSScripts(t *testing.T) {
	start := func(change func(*protocol.Settings)) conformance.Factory { return issWith(scripted, change) }
	o := conformance.Options{Skips: true, Derive: func(c protocol.Config) protocol.Derived { return epochs.New(scripted, c) }}
	conformance.Scripts(t, "testdata/iss", multipaxos.ISSCodec, start, o, func(st protocol.Status) string {
		return fmt.Sprintf("%s, leader %s since epoch %d, log %d…%d durable %d decided %d", st.Role, st.Leader, st.Term, st.First, st.Last, st.Durable, st.Commit)
	})
}

package paxos_test

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/paxos"
)

func TestScripts(t *testing.T) {
	conformance.Scripts(t, "testdata", paxos.Codec, factory, conformance.Options{}, func(st protocol.Status) string {
		return fmt.Sprintf("%s ballot %s log %d…%d durable %d leader %s", st.Role, paxos.Ballot(st.Term), st.First, st.Last, st.Durable, st.Leader)
	})
}

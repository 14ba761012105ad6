package multipaxos_test

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

func TestScripts(t *testing.T) {
	conformance.Scripts(t, "testdata", multipaxos.Codec, factory, conformance.Options{}, func(st protocol.Status) string {
		text := fmt.Sprintf("%s ballot %s log %d…%d durable %d leader %s", st.Role, paxos.Ballot(st.Term), st.First, st.Last,
			st.Durable, st.Leader)
		if v := st.Config.Profile.Version; v > 0 {
			text += fmt.Sprintf(" profile %d", v)
		}
		return text
	})
}

package slotpaxos_test

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

func TestScripts(t *testing.T) {
	conformance.Scripts(t, "testdata", slotpaxos.Codec, factory, options, func(st protocol.Status) string {
		text := fmt.Sprintf("%s ballot %s log %d…%d durable %d leader %s", st.Role, slotpaxos.Ballot(st.Term), st.First,
			st.Last, st.Durable, st.Leader)
		if v := st.Config.Profile.Version; v > 0 {
			text += fmt.Sprintf(" profile %d", v)
		}
		return text
	})
}

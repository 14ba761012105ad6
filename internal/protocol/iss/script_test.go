package iss_test

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// fourSlots are epochs of four slots for each leader.
var fourSlots = epochs.Settings{MinSlots: 16, MaxSlots: 16, Policy: epochs.Combined, Ban: 2, MaxBan: 8}

func TestScripts(t *testing.T) {
	start := func(change func(*protocol.Settings)) conformance.Factory { return with(fourSlots, change) }
	o := conformance.Options{Skips: true,
		Derive: func(c protocol.Config) protocol.Derived { return epochs.New(fourSlots, c) }}
	conformance.Scripts(t, "testdata", iss.Codec, start, o, func(st protocol.Status) string {
		text := fmt.Sprintf("%s, leader %s since epoch %d, log %d…%d durable %d decided %d", st.Role, st.Leader, st.Term,
			st.First, st.Last, st.Durable, st.Commit)
		if v := st.Config.Profile.Version; v > 0 {
			text += fmt.Sprintf(" profile %d", v)
		}
		return text
	})
}

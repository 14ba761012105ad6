package fault

import (
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// otherFlagRuns draws the runs whose members start with the flags of other protocols.
var otherFlagRuns = draw.New("runs with other flags")

// drawOtherFlags draws whether members start with the flags of other protocols of the same core. Their log has a
// profile from the beginning on.
func (s *Settings) drawOtherFlags(d draw.Chance) {
	if s.Mutant != "" || s.Keyed || s.Protocol.Quorums != nil || !s.Protocol.Grows() || !d.Yes(0.3) {
		return
	}
	if s.Profile.Version == 0 && s.Single && s.Merged() {
		return // it must not grow before operators tune it
	}
	s.OtherFlags = true
	if s.Profile.Version == 0 {
		s.Profile = protocol.Profile{Version: 1, Values: values(&s.Core)}
	}
}

func (s *Settings) describeOtherFlags() string {
	if !s.OtherFlags {
		return ""
	}
	return "members start with the flags of other protocols of their core\n"
}

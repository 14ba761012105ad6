package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// Settings of instances whose logs are merged into one.

func (s *Settings) drawWeave(d draw.Chance) {
	if !s.Merged() {
		return
	}
	w := &s.Weave
	s.Core.Leaders = [...]protocol.Leaders{
		protocol.LeadersTogether, protocol.LeadersSpread, protocol.LeadersAny,
	}[d.Below(3)]
	if !s.prefers() {
		s.Core.Leaders = protocol.LeadersAll
	}
	if d.Yes(0.6) {
		w.Scatter = d.Share()
	}
	if d.Yes(0.5) {
		w.Lazy = d.Share()
	}
	if s.resizes() && d.Yes(0.3) {
		s.Faults[faultReshape] = s.Election * time.Duration(2+d.Below(15))
	}
	if s.resizes() && d.Yes(0.25) && s.Faults[faultDamage] == 0 && !s.Resize {
		w.Move = 0.5 + 0.5*d.Share()
		s.Faults[faultReshape] = s.Election * time.Duration(2+d.Below(8))
		s.Faults[faultChange] = s.Election * time.Duration(4+d.Below(20))
		if d.Yes(0.5) { // the log reaches back to the change, so a new member gets no snapshot with it
			s.SnapshotBytes = 1 << 30
		}
	}
}

// prefers reports whether some members are preferred as leaders of merged instances.
func (s *Settings) prefers() bool { return s.Merged() && !s.Protocol.Core.Judged.ManyLead }

// resizes reports whether operators can change the number of instances.
func (s *Settings) resizes() bool { return s.Protocol.Grows() }

// foundProfile draws whether a log of one instance that others may join begins with a profile. Without one it must not
// get other instances before an operator has tuned it.
func (s *Settings) foundProfile(d draw.Chance) {
	if s.Single && s.Merged() && d.Yes(0.8) {
		s.Profile = protocol.Profile{Version: 1, Values: values(&s.Core)}
	}
}

func (s *Settings) describeWeave() string {
	switch {
	case s.Keyed:
		return fmt.Sprintf("%d groups, leaders %q, stealing %s\n", s.Instances, s.Core.Leaders, wpaxos.Steal.In(s.Core.Own))
	case !s.Merged():
		return ""
	}
	return fmt.Sprintf("%d instances, leaders %q, %.0f%% of batches anywhere, %.0f%% of waits seen late, "+
		"a member is moved after %.0f%% of reshapes\n",
		s.Instances, s.Core.Leaders, 100*s.Weave.Scatter, 100*s.Weave.Lazy, 100*s.Weave.Move)
}

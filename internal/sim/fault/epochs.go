package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings of a protocol with epochs: the length of epochs, the policy for leaders, and the behavior of idle leaders.

// drawEpochs draws the settings of the epochs. Many runs have the defaults.
func (s *Settings) drawEpochs(d draw.Chance) {
	if !s.Protocol.Core.Settings.Has(epochs.Setting) {
		return
	}
	if d.Yes(0.4) {
		s.chooseEpochs(d)
	}
	if d.Yes(0.4) {
		s.DrawIdle(d)
	}
	if s.InboxBytes > 0 {
		s.InboxBytes = max(s.InboxBytes, leastEpochInbox)
	}
}

// leastEpochInbox has space for a small message from each of nine members. All of them send all the time, because all
// of them lead. With less space, most replies to a member would be refused.
const leastEpochInbox = 2000

// chooseEpochs draws the settings of the run's flags.
func (s *Settings) chooseEpochs(d draw.Chance) {
	s.Core.Own = epochs.Setting.Set(s.Core.Own, someEpochs(d))
	if s.Merged() {
		s.Core.Own = roomy(s.Core.Own)
	}
}

// roomy are settings whose epochs have enough slots for instances that are merged.
func roomy(v setting.Values) setting.Values {
	e := epochs.Setting.In(v)
	if e.MinSlots >= iss.MergedSlots {
		return v
	}
	e.MinSlots, e.MaxSlots = iss.MergedSlots, max(e.MaxSlots, iss.MergedSlots)
	return epochs.Setting.Set(v, e)
}

// someEpochs mostly makes epochs short, so that many of them end in a run.
func someEpochs(d draw.Chance) protocol.EpochSettings {
	least, ban := [...]int{4, 8, 16, 64}[d.Below(4)], 1+d.Below(4)
	return protocol.EpochSettings{
		MinSlots: least, MaxSlots: least << [...]int{0, 0, 1, 4}[d.Below(4)], EqualShares: d.Yes(0.4),
		Policy: [...]string{"simple", "backoff", "blacklist", "combined"}[d.Below(4)],
		Ban:    ban, MaxBan: ban << d.Below(5),
	}
}

// Bans reports whether leaders follow from the log, and members that others suspect, or that stop, do not lead.
func Bans(w *World) bool {
	return w.Court.First.Core.Judged.ManyLead && epochs.Setting.In(ownNow(w)).Policy != epochs.Simple.String()
}

// ownNow returns the protocol's settings under the last decided profile.
func ownNow(w *World) setting.Values {
	if p := &w.Court.First.Last().Profile; p.Core != "" {
		return p.Values
	}
	return w.Set.Core.Own
}

// EpochTime is the maximal time until the slot of a proposal is reached: two epochs may have to be decided first,
// slot after slot, each within the time piece.
func EpochTime(w *World, piece time.Duration) time.Duration {
	if !w.Court.First.Core.Judged.ManyLead {
		return 0
	}
	return time.Duration(2*len(w.Members)*epochs.Setting.In(ownNow(w)).MinSlots) * piece
}

func (s *Settings) describeEpochs() string {
	if !s.Protocol.Core.Settings.Has(epochs.Setting) {
		return ""
	}
	return fmt.Sprintf("epochs: %s; skips %t, after %s\n",
		epochs.Setting.In(s.Core.Own), !iss.NoSkip.In(s.Core.Own), iss.SkipWait.In(s.Core.Own))
}

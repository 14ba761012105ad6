package fault

import (
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// Members are upgraded one after the other, to a version that knows a later format of log and frames. Members that
// join later have that version.

var faultUpgrade = &Fault{Name: "upgrade", Does: "a member restarts with a version that knows a later format"}

func init() {
	faultUpgrade.Draw = (*Settings).drawUpgrades
	faultUpgrade.Strike = func(w *World, m *node.Member) { upgrade(w, m) }
	faultUpgrade.End = upgradeAll
}

var upgrades = count.New("upgrades", "upgrades of a member", count.Bodiless)

// formatMutants begins the names of the mutants that upgrades find.
const formatMutants = "format-"

const laterFormat = format.First + 1

func (s *Settings) drawUpgrades(d draw.Chance) {
	if s.Mutant != "" && !strings.HasPrefix(s.Mutant, formatMutants) {
		return
	}
	if d.Yes(0.15) || s.Mutant != "" {
		s.Faults[faultUpgrade] = s.Election * time.Duration(2+d.Below(10))
	}
}

// upgrade stops a member in order, or not, and starts it later with the later version.
func upgrade(w *World, m *node.Member) {
	if isLater(m) {
		return
	}
	m.Newest = laterFormat
	w.Count(upgrades)
	back := w.Between(0, 3*w.Set.Election)
	if w.Chance(0.5) {
		w.Tracef("FAULT %s stops to be upgraded", m.ID)
		LeaveFor(w, m, back)
		return
	}
	w.Tracef("FAULT %s loses power, and is upgraded", m.ID)
	m.Crash()
	w.StartLater(m, back)
}

// install gives a member that starts for the first time the version that others have.
func install(w *World, m *node.Member) {
	if m.Running == nil && slices.ContainsFunc(w.Members, isLater) {
		m.Newest = laterFormat
	}
}

func isLater(m *node.Member) bool { return m.Newest == laterFormat }

// upgradeAll upgrades all members if any is upgraded: those of the earlier version may have no link.
func upgradeAll(w *World) {
	if !slices.ContainsFunc(w.Members, isLater) {
		return
	}
	for _, m := range w.Members {
		if !isLater(m) && m.Up {
			m.Crash() // it starts with the later version
		}
		m.Newest = laterFormat
	}
}

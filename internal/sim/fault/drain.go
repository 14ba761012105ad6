package fault

import (
	"strings"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

var faultDrain = &Fault{Name: "drain", Does: "the operator drains a member for a while: it leads nothing"}

func init() {
	faultDrain.Draw = (*Settings).drawDrains
	faultDrain.Strike = drainMember
	faultDrain.Heal = func(m *node.Member) {
		if m.Up && m.Drains() {
			m.Drain(false)
		}
	}
}

var (
	drainsInRun = draw.New("drains")
	drains      = count.New("drains", "drains of a member")
)

// drainMutants begins the names of the mutants that drains find. noDrainMutant breaks nothing, in runs like those.
const (
	drainMutants  = "drain-"
	noDrainMutant = drainMutants + "none"
)

// SeeksDrain reports whether runs search for a mutant that drains find.
func (s *Settings) SeeksDrain() bool { return strings.HasPrefix(s.Mutant, drainMutants) }

func (s *Settings) drawDrains(d draw.Chance) {
	if s.Mutant == "" && d.Yes(0.15) {
		s.Faults[faultDrain] = s.Election * time.Duration(3+d.Below(20))
	}
}

// drainMember drains a member for a while, or until it stops. A member that is paused learns of it later.
func drainMember(w *World, m *node.Member) {
	m.WhenAwake(func() {
		if w.Calm || m.Drains() {
			return
		}
		w.Count(drains)
		w.Tracef("FAULT %s is drained", m.ID)
		m.Drain(true)
		m.Later(w.From(drainsInRun).Duration(w.Set.Election, 20*w.Set.Election), func() {
			if !w.Calm {
				w.Tracef("%s may lead again", m.ID)
				m.Drain(false)
			}
		})
	})
}

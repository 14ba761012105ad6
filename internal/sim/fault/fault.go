package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// Fault is a kind of fault, or an action of an operator. It is declared in a file of its own, and listed in Faults.
// Its functions are set in that file's init, because they may refer to other faults.
type Fault struct {
	// Name is the fault's name in traces and for the flag --without, and the name of its source of chance.
	Name string
	Does string // its effect, in words
	// Usual: drawUsual draws whether a run has it.
	Usual bool
	// Thinned: drawMeet may turn it off in runs with few faults. Faults added later have only their own Draw.
	Thinned bool
	// Draw, if set, draws whether a run has the fault, and how often. It may change other settings too.
	Draw func(s *Settings, d draw.Chance)
	// Strike injects the fault once. m is a running member; the fault may affect others.
	Strike func(w *World, m *node.Member)
	// Heal, if set, ends the fault at a member, and End in the whole cluster, when the second phase begins.
	Heal func(m *node.Member)
	End  func(w *World)

	Source *draw.Source // of Draw; if nil, init sets a source with the fault's name
}

// rates are the mean times between two faults of a kind; 0: a run has none.
type rates map[*Fault]time.Duration

// among returns the given faults that a run has.
func (r rates) among(some []*Fault) (kinds []*Fault) {
	for _, f := range some {
		if r[f] > 0 {
			kinds = append(kinds, f)
		}
	}
	return kinds
}

// kinds returns the faults that a run has, in the list's order.
func (r rates) kinds() []*Fault { return r.among(Faults) }

// Names lists the names of the kinds of faults, in the list's order.
func Names() (names []string) {
	for _, f := range Faults {
		names = append(names, f.Name)
	}
	return names
}

// Named returns the fault with that name, or nil.
func Named(name string) *Fault {
	if i := slices.IndexFunc(Faults, func(f *Fault) bool { return f.Name == name }); i >= 0 {
		return Faults[i]
	}
	return nil
}

// drawUsual draws which usual faults a run has, and how often.
func (s *Settings) drawUsual(d draw.Chance) {
	if d.Yes(0.05) {
		return // a quiet run
	}
	for _, f := range Faults {
		if f.Usual && d.Yes(0.45) {
			s.Faults[f] = s.Election * time.Duration(2+d.Below(20))
		}
	}
}

// OpenFaults schedules the first fault of each kind.
func (w *World) OpenFaults() {
	for _, f := range w.Set.Faults.kinds() {
		w.planFault(f, w.Set.Faults[f])
	}
}

func (w *World) planFault(f *Fault, every time.Duration) {
	w.After(time.Duration(w.Rand.ExpFloat64()*float64(every)), func() {
		if w.Calm {
			return
		}
		if victim := w.victim(); victim != nil {
			f.Strike(w, victim)
			another(w, victim)
		}
		w.planFault(f, every)
	})
}

// HealFaults ends all faults, first at the members.
func (w *World) HealFaults() {
	for _, f := range Faults {
		for _, m := range w.Members {
			if f.Heal != nil {
				f.Heal(m)
			}
		}
	}
	for _, f := range Faults {
		if f.End != nil {
			f.End(w)
		}
	}
}

// victim draws a member that runs, or returns nil if none does. It prefers leaders.
func (w *World) victim() *node.Member {
	var up []*node.Member
	for _, m := range w.Members {
		if m.Up {
			up = append(up, m)
			if m.LeadsAny() && w.Chance(0.3) {
				return m
			}
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.Pick(len(up))]
}

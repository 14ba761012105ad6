package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// Fault is a kind of fault, or of what an operator does. It is declared in a file of its own, and has a line in the
// list of faults. Its functions are set in that file's init, because they may name other faults.
type Fault struct {
	// Name is what traces, the flag --without and the fault's source of chance are named by.
	Name string
	// Usual: drawUsual draws it together with others like it, in most runs.
	Usual bool
	// Thinned: runs with few faults may be without it (drawMeet). Later faults have only their own Draw.
	Thinned bool
	// Draw, if set, chooses whether a run has the fault, and how often. It may change other settings too.
	Draw func(s *Settings, d draw.Chance)
	// Strike lets the fault happen once. m is a member that runs; it may concern others.
	Strike func(w *World, m *node.Member)
	// Heal, if set, ends the fault at a member, and End in the whole cluster, when the second phase begins.
	Heal func(m *node.Member)
	End  func(w *World)

	Source *draw.Source // of Draw; nil: the one of the fault's name, from init on
}

// rates is the mean time between two faults of a kind; 0: a run has none.
type rates map[*Fault]time.Duration

// among returns those of these faults that a run has.
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

// Names lists the names of the kinds of faults.
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

// drawUsual chooses which of the usual faults a run has, and how often.
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

// OpenFaults plans the first fault of each kind.
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
			w.strike(f, victim)
			another(w, victim)
		}
		w.planFault(f, every)
	})
}

// strike lets one fault happen. victim is the member, where the fault concerns only one; nil: no member runs.
func (w *World) strike(f *Fault, victim *node.Member) {
	if victim != nil {
		f.Strike(w, victim)
	}
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

// victim draws a member that runs. It prefers leaders.
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

package fault

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Faults aimed at coded entries. A coded entry is vulnerable only while few members hold it: while it is replicated,
// and just after it was decided. At any other time all members hold it. So in some runs faults look at what members
// hold and strike then.

// aimSettings are the probabilities of aimed faults.
type aimSettings struct {
	// Sent is the probability that a fault strikes while a leader sends a coded entry: the leader, or some of the
	// receivers. Decided is the probability that a fault strikes the leader that has just decided one.
	Sent, Decided float64
	// Thin is the probability that bytes of a body that was just decided are damaged on a member that holds the whole
	// body.
	Thin float64
	// Rest is the minimal time between two aimed faults.
	Rest time.Duration
}

// drawAim draws how often faults are aimed.
func (s *Settings) drawAim(d draw.Chance) {
	if s.Core.Placement == protocol.PlacementCopy || s.Bodies.Share == 0 {
		return
	}
	a := &s.Aim
	a.Rest = s.Election * time.Duration(1+d.Below(6))
	if d.Yes(0.5) {
		a.Sent = 0.5 * d.Share()
	}
	if d.Yes(0.5) {
		a.Decided = 0.5 * d.Share()
	}
	if d.Yes(0.7) {
		a.Thin = d.Share()
	}
	if d.Yes(0.3) {
		s.aimOnly(d)
	}
	if d.Yes(0.15) {
		s.lateMembers(d)
	}
	if b := &s.Bodies; a.Thin > 0 && s.Faults[faultDamage] > 0 { // shorter bodies cannot be found on a disk
		b.Min = max(b.Min, 40)
		b.Max = max(b.Max, 2*b.Min)
	}
}

// aimOnly removes almost all faults that are not aimed. A leader codes entries only while no member fails, so most
// entries are coded in such runs.
func (s *Settings) aimOnly(d draw.Chance) {
	damage := s.Faults[faultDamage]
	s.Faults = rates{faultDamage: damage}
	for _, f := range hits {
		if d.Yes(0.6) {
			s.Faults[f] = s.Election * time.Duration(20+d.Below(40))
		}
	}
	if s.Resize && d.Yes(0.3) {
		s.Faults[faultChange] = s.Election * time.Duration(4+d.Below(10))
	} else if s.Resize = false; d.Yes(0.8) {
		s.Faults[faultDamage] = s.Election * time.Duration(1+d.Below(6))
	}
	if q := s.Nodes/2 + 1; s.Core.Placement == protocol.PlacementCode && q > 1 {
		s.Core.MaxK = 2 + d.Below(q-1)
	}
	s.Bodies.Share = 0.5 + 0.5*d.Share()
	s.Reads = 0.4 * d.Share()
	s.Aim.Sent, s.Aim.Decided = max(s.Aim.Sent, 0.3*d.Share()), max(s.Aim.Decided, 0.3*d.Share())
}

// hits are the faults that are aimed at members.
var hits = [...]*Fault{faultCrash, faultPause, faultIsolate, faultFreeze, faultOneWay, faultPartition}

func (s *Settings) describeAim() string {
	a := &s.Aim
	if *a == (aimSettings{}) {
		return ""
	}
	return fmt.Sprintf("aimed faults: %.0f%% of coded entries on their way, %.0f%% of decided ones, a pause of %s; "+
		"%.0f%% of decided bodies are damaged\n",
		100*a.Sent, 100*a.Decided, a.Rest, 100*a.Thin)
}

// SentCoded sometimes strikes the leader that has just appended a coded entry, or a minority of the others. These
// miss the entry, so the leader completes it with whole copies.
func (w *World) SentCoded(leader *node.Member) {
	if !aims(w, w.Set.Aim.Sent, &w.rests.sent) {
		return
	}
	within := w.Set.DelayMax + w.Set.SyncMax
	if w.Chance(0.5) {
		hitSoon(w, leader, within)
		return
	}
	if w.Set.Faults[faultCrash] == 0 {
		return
	}
	n := 1 + w.Pick(max(1, (w.Set.Nodes-1)/2))
	for _, i := range w.Rand.Perm(len(w.Members)) {
		if m := w.Members[i]; n > 0 && m != leader && m.Up {
			missSoon(w, m, within)
			n--
		}
	}
}

// missSoon lets a member lose power soon, for longer than the leader waits for it.
func missSoon(w *World, m *node.Member, within time.Duration) {
	life := m.Life
	w.After(w.Between(0, within), func() {
		if !w.Calm && m.Up && m.Life == life {
			w.Tracef("FAULT %s loses power while a coded entry is sent", m.ID)
			m.Crash()
			w.StartLater(m, w.Set.Election+w.Between(0, 8*w.Set.Election))
		}
	})
}

// decidedCoded sometimes strikes the leader that has just decided a coded entry. The others may hold just enough to
// reconstruct the entry, and do not know that it is decided.
func decidedCoded(w *World, leader *node.Member, c *judge.Instance, index protocol.Index) {
	if aims(w, w.Set.Aim.Decided, &w.rests.decided) {
		hitSoon(w, leader, w.Set.DelayMax)
	}
	if w.Set.Faults[faultDamage] > 0 && !w.Calm && w.Set.Aim.Thin > 0 {
		w.After(w.Between(0, w.Set.Election), func() { damageThin(w, c, uint64(index), 8) })
	}
}

// rests are the times until which no aimed fault strikes.
type rests struct{ sent, decided time.Duration }

// aims reports, by chance, whether an aimed fault strikes now. If so, it begins a pause.
func aims(w *World, p float64, rest *time.Duration) bool {
	if w.Calm || w.Now() < *rest || !w.Chance(p) {
		return false
	}
	*rest = w.Now() + w.Set.Aim.Rest
	return true
}

// hitSoon strikes a member soon, with a kind of fault that the run has.
func hitSoon(w *World, m *node.Member, within time.Duration) {
	kinds := w.Set.Faults.among(hits[:])
	if len(kinds) == 0 {
		return
	}
	f := kinds[w.Pick(len(kinds))]
	w.After(w.Between(0, within), func() {
		if m.Up && !w.Calm {
			f.Strike(w, m)
		}
	})
}

// damageThin damages a body that not all members hold, on a member that holds the whole body. Sometimes that member
// soon reads all its bodies.
func damageThin(w *World, c *judge.Instance, index uint64, tries int) {
	holds := func(m *node.Member) check.Form { return c.Bodies.Holds(m.Judged(), index) }
	whole := w.UpAnd(func(m *node.Member) bool { return holds(m) == check.WholeBody })
	all := !slices.ContainsFunc(w.Members, func(m *node.Member) bool { return !m.Gone && holds(m) == check.NoBody })
	if w.Calm || tries == 0 || len(whole) < 2 || all || !w.Chance(w.Set.Aim.Thin) {
		return
	}
	m := whole[w.Pick(len(whole))]
	m.WhenWritten(64, func() {
		s := m.Of(c.ID)
		switch {
		case s == nil:
		case !slices.Contains(damageable(w, m, s), index) || !spoilBody(w, m, s, index):
			w.After(w.Between(0, w.Set.Election/2), func() { damageThin(w, c, index, tries-1) })
		case w.Chance(0.7):
			w.After(w.Between(0, w.Set.Election/2), m.ReadAll)
		}
	})
}

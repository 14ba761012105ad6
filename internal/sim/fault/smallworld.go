package fault

import (
	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/client"
)

// smallWorld is the world of another cluster, in which nothing fails but what its owner does. One client writes.
type smallWorld struct {
	*World
	probe *client.Probe
}

// found makes a small World with the settings of w, as change changes them. Its seed is that of w with a salt.
func found(w *World, salt uint64, change func(*Settings)) *smallWorld {
	set := w.Set
	set.Seed ^= salt
	set.Faults, set.OddFounder, set.Apart, set.Astray, set.Namesakes = rates{}, false, false, 0, noNamesakes
	change(&set)
	set.PerfectLinks()
	set.Timely()
	s := &smallWorld{World: New(set, RunChance.Of(set.Seed).Rand, nil)}
	s.Calm = true
	return s
}

// write makes the client write periodically.
func (s *smallWorld) write() {
	s.probe.Try(check.Append, 0, func() { s.After(s.Set.Election/2, s.write) })
}

package sim

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
)

// How long the way from one member to another is. By itself the seed draws that, for all links alike.
// With a specification (Options.Net) each way takes what lies between the two members, and the seed
// draws what is added to it. Member i is m<i>.

// netOf reads a specification. Links of a simulation lose messages as the seed says, and are narrow
// when it says so. So there is only latency and jitter.
func netOf(text string) (netspec.Spec, error) {
	spec, err := netspec.Parse(text)
	if err == nil {
		err = spec.LatencyOnly()
	}
	if err != nil {
		return netspec.Spec{}, &OptionError{err.Error()}
	}
	return spec, nil
}

// patient is how long heartbeats are apart, at least, where members are far from each other. All other
// times follow from it. An election timeout is at least eighteen of the farthest ways.
func (s *Settings) patient() time.Duration { return 6 * s.Farthest }

// stretch makes the bounds of all trips what the specification says. DelayMax is how long any trip
// takes at most, and what it has beyond the farthest way is what may be added to each.
func (s *Settings) stretch() {
	if !s.Net.Enabled() {
		return
	}
	s.DelayMin, s.DelayMax = min(s.DelayMin, s.Farthest), s.Farthest+min(s.DelayMax-s.DelayMin, s.Farthest/2)
}

// nameOf is a member's name, by which a specification finds it.
func nameOf(id protocol.MemberID) string { return fmt.Sprintf("m%d", uint64(id)) }

// way is the shortest and the longest time of a trip from one member to another.
func (w *World) way(from, to protocol.MemberID) (lo, hi time.Duration) {
	s := &w.set
	if !s.Net.Enabled() {
		return s.DelayMin, s.DelayMax
	}
	l := w.link(from, to)
	if l.way == nil {
		way := s.Net.Link(nameOf(from), nameOf(to))
		l.way = &way
	}
	return max(0, l.way.Latency-l.way.Jitter), l.way.Latency + l.way.Jitter + max(0, s.DelayMax-s.Farthest)
}

// trip draws how long a message or an answer takes.
func (w *World) trip(from, to protocol.MemberID) time.Duration { return w.between(w.way(from, to)) }

// roundTrip draws how long a question and its answer take.
func (w *World) roundTrip(from, to protocol.MemberID) time.Duration {
	lo, hi := w.way(from, to)
	lo2, hi2 := w.way(to, from)
	return w.between(lo+lo2, hi+hi2)
}

func (s *Settings) describeNet() string {
	if !s.Net.Enabled() {
		return ""
	}
	return fmt.Sprintf("ways between members: %s\n", &s.Net)
}

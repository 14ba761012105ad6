package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Faults that coincide. A protocol mostly tolerates a single fault, because the other members are healthy. Bugs show
// when a second fault strikes before the first is over, at the same member, or just after an election. So in some
// runs faults come in clusters, and others have few or none.

var (
	backAfterCut    = count.New("members_back_after_the_logs_were_cut", "away for longer than the log")
	leadersCutShort = count.New("leaders_cut_short", "leaders cut short")
)

// meetSettings are the probabilities of faults that coincide.
type meetSettings struct {
	// Again is the probability that another fault soon follows a fault. Its kind is one that the run has. Same is the
	// probability that it strikes the same member.
	Again, Same float64
	// Upset is the probability that a fault strikes a newly elected leader.
	Upset float64
	// Long is the probability that a pause, or the isolation of a leader, lasts about as long as an election.
	Long float64
	// Edge is the probability that a clock has the maximal drift of the run.
	Edge float64
	// Overlap is the probability that links are cut while others are still cut.
	Overlap float64
	// Brief is the probability that a leader is cut off at the moment of its election, or of its first decision. See
	// cutShort.
	Brief float64
	// Against is the probability that clocks get the maximal drift when a leader is cut off. See clocksAgainst.
	Against float64
}

// drawMeet draws how faults coincide. It also draws the faults that are harmless alone: members that are away for
// long or apply late, narrow links, slow streams of snapshots.
func (s *Settings) drawMeet(d draw.Chance) {
	switch d.Below(8) {
	case 0: // few kinds
		for _, f := range Faults {
			if f.Thinned && d.Yes(0.6) {
				s.Faults[f] = 0
			}
		}
	case 1: // all of them
		for _, f := range Faults {
			if f.Usual && s.Faults[f] == 0 && !s.Resize &&
				(f != faultChange || s.Protocol.Quorums == nil && s.Faults[faultDamage] == 0) {
				s.Faults[f] = s.Election * time.Duration(4+d.Below(20))
			}
		}
	}
	if m := &s.Meet; d.Yes(0.6) {
		m.Again, m.Same, m.Long, m.Overlap = 0.7*d.Share(), d.Share(), d.Share(), d.Share()
		if d.Yes(0.5) {
			m.Edge = d.Share()
		}
		if d.Yes(0.4) {
			m.Upset = d.Share()
		}
	}
	often := func(p float64, f *Fault) {
		if d.Yes(p) {
			s.Faults[f] = s.Election * time.Duration(3+d.Below(12))
		}
	}
	often(0.25, faultLag)
	often(0.25, faultNarrow)
	if often(0.25, faultAway); s.Faults[faultAway] > 0 && s.SnapshotBytes > 5000 && d.Yes(0.8) {
		s.SnapshotBytes = d.Limit(300, 1000, 5000)
		s.KeepLogBytes = int64(d.Limit(0, 0, 10)) * int64(s.SnapshotBytes)
	}
	if d.Yes(0.4) { // a state of a few kilobytes takes up to a few election timeouts
		s.StreamRate = int(float64(d.Limit(500, 2000, 10_000)) / s.Election.Seconds())
	}
}

// drawBrief draws whether leaders replace each other so fast that their logs diverge.
func (s *Settings) drawBrief(d draw.Chance) {
	if s.Meet.Against = d.Share(); d.Yes(0.85) {
		return
	}
	s.Meet.Brief = 0.5 + 0.5*d.Share()
	s.Chaos += s.Chaos / 2
	s.Operations = min(s.Operations, 150)
	s.Think = max(s.Think, 2*s.Chaos*time.Duration(s.Clients)/time.Duration(s.Operations))
	s.Timely()
	if d.Yes(0.6) { // the next leader needs many frames for what one leader left
		s.Core.MaxFrameEntries = 1
	}
	if d.Yes(0.7) { // other faults would prevent elections
		s.Faults = rates{faultCrash: s.Election * time.Duration(4+d.Below(20))}
	}
}

func (s *Settings) describeMeet() string {
	m := &s.Meet
	return fmt.Sprintf("faults: %.0f%% are followed by others, %.0f%% at the same member; "+
		"%.0f%% of new leaders are struck, %.0f%% stand still for long, "+
		"%.0f%% of clocks as wrong as may be, %.0f%% against a leader that is cut off, "+
		"%.0f%% of cuts beside others; %.0f%% of leaders are cut short; streams of %d bytes a second\n",
		100*m.Again, 100*m.Same, 100*m.Upset, 100*m.Long, 100*m.Edge, 100*m.Against,
		100*m.Overlap, 100*m.Brief, s.StreamRate)
}

// another sometimes schedules a fault soon after this one, perhaps at the same member.
func another(w *World, victim *node.Member) {
	if !w.Chance(w.Set.Meet.Again) {
		return
	}
	kinds := w.Set.Faults.kinds()
	f := kinds[w.Pick(len(kinds))]
	same := w.Chance(w.Set.Meet.Same)
	w.After(w.Between(0, 2*w.Set.Election), func() {
		if w.Calm {
			return
		}
		if !same || !victim.Up {
			victim = w.victim()
		}
		if victim != nil {
			f.Strike(w, victim)
		}
	})
}

// upsets are the faults that strike a newly elected leader.
var upsets = [...]*Fault{faultCrash, faultPause, faultIsolate, faultFreeze, faultTransfer, faultPartition}

// strikeElected sometimes strikes a member that has just been elected, before it sends its first entries or while
// they are in flight.
func strikeElected(w *World, s *node.MemberInstance) {
	m := s.Member
	if s.Brief = false; w.Calm {
		return
	}
	w.Clients.Crowd(m)
	if w.Chance(w.Set.Meet.Brief) {
		if s.Brief = w.Chance(0.5); !s.Brief {
			cutShort(w, m)
		}
	}
	if !w.Chance(w.Set.Meet.Upset) {
		return
	}
	kinds := w.Set.Faults.among(upsets[:])
	if len(kinds) == 0 {
		return
	}
	f := kinds[w.Pick(len(kinds))]
	w.After(w.Between(0, 4*(w.Set.DelayMax+w.Set.SyncMax)), func() {
		if m.Up && !w.Calm {
			f.Strike(w, m)
		}
	})
}

// firstDecision cuts a brief leader off as soon as it decides anything: the decision must last, although hardly any
// member knows it.
func firstDecision(w *World, s *node.MemberInstance) {
	if s.Brief && !w.Calm {
		s.Brief = false
		cutShort(w, s.Member)
	}
}

// cutShort cuts a leader off at once, alone or with a minority, so that its next messages are lost. Sometimes it also
// stops the leader.
func cutShort(w *World, m *node.Member) {
	if !w.Chance(w.Set.Meet.Overlap / 2) {
		HealLinks(w)
	}
	side := map[protocol.MemberID]bool{m.ID: true}
	for range w.Among(max(1, (len(w.Members)-1)/2)) {
		side[protocol.MemberID(1+w.Pick(len(w.Members)))] = true
	}
	for _, a := range w.Members {
		for _, b := range w.Members {
			w.Net.Link(a.ID, b.ID).Cut = w.Net.Link(a.ID, b.ID).Cut || side[a.ID] != side[b.ID]
		}
	}
	clocksAgainst(w, m)
	w.Count(leadersCutShort)
	w.Tracef("FAULT %s leads, and links are cut:%s", m.ID, describeCuts(w))
	life := m.Life
	w.After(w.Between(0, w.Set.Election), func() {
		if m.Up && m.Life == life && !w.Calm && w.Chance(0.3) {
			stopMember(w, m)
		}
	})
	if w.Chance(0.5) {
		w.After(w.Between(0, 4*w.Set.Election), func() { HealLinks(w) })
	}
}

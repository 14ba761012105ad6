package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Operators change the protocol: they have the log sealed, and it continues in other instances.

var faultSwitch = &Fault{Name: "switch", Does: "the operator changes the protocol"}

func init() {
	faultSwitch.Draw = (*Settings).drawSwitches
	faultSwitch.Strike = func(w *World, _ *node.Member) { switchProtocol(w) }
}

// switchShare is the share of runs with switches. switchTargets are the names of cores to which a log changes, besides
// its own.
const switchShare = 0.25

var switchTargets = map[string][]string{
	"raft": {"multi-paxos", "iss"}, "multi-paxos": {"raft", "iss"}, "iss": {"raft", "multi-paxos"},
}

// switchesInRun draws what operators change during a run.
var switchesInRun = draw.New("switches")

// wovenSeals draws which switches to a protocol with many leaders begin several instances.
var wovenSeals = draw.New("seals to several instances with many leaders")

var (
	switchesAsked  = count.New("switches", "switches", count.Bodiless)
	switchesWithin = count.New("switches_to_the_same_core", "switches to the same core", count.Bodiless)
)

// switchMutants is in the names of the mutants that switches find. Searches for these have switches in all runs, and
// those for others in none.
const switchMutants = "seal-"

// noSwitchMutant breaks nothing, in runs like those of the mutants that switches find.
const noSwitchMutant = switchMutants + "none"

// Unbroken is the name of a mutant that breaks nothing, in runs like those of another mutant.
func Unbroken(mutant string) string {
	switch {
	case strings.HasPrefix(mutant, fitMutants):
		return noFitMutant
	case strings.Contains(mutant, switchMutants):
		return noSwitchMutant
	case strings.HasPrefix(mutant, drainMutants):
		return noDrainMutant
	}
	return ""
}

// drawSwitches draws whether operators change the protocol.
func (s *Settings) drawSwitches(d draw.Chance) {
	p := s.Protocol
	sought := strings.Contains(s.Mutant, switchMutants)
	all := s.Flexible() || !p.Own.IsZero() // other runs never come back to those
	if s.Mutant != "" && !sought || !p.Serves() || s.Keyed ||
		all && s.staged() || !d.Yes(switchShare) && !sought {
		return
	}
	s.Switches = true
	s.drawTargets(targetsOfRun.Of(s.Seed), all)
	s.Faults[faultSwitch] = s.Election * time.Duration(2+d.Below(20))
}

// foundSwitching gives a log that is to be sealed a profile from its beginning on.
func (s *Settings) foundSwitching() {
	if s.Switches && s.Profile.Version == 0 {
		s.Profile = protocol.Profile{Version: 1, Values: values(&s.Core)}
	}
}

func (s *Settings) describeSwitches() string {
	if !s.Switches {
		return ""
	}
	text := fmt.Sprintf("operators change the protocol every %s", s.Faults[faultSwitch])
	if s.Targets.All {
		text += fmt.Sprintf(", to all settings, quorums %s", s.Targets.Quorums)
	}
	return text + "\n"
}

// switchProtocol has an operator change the protocol, or two operators at the same time.
func switchProtocol(w *World) {
	d, l := w.From(switchesInRun), w.Leader()
	if l == nil {
		return
	}
	profile := l.Witness.Latest.Config.Profile
	if w.Set.Targets.All && !w.Set.laneless(&profile) && !w.From(targetsInRun).Yes(0.2) {
		leaveLanes(w, d, &profile)
		return
	}
	askSwitch(w, d, memberToAsk(w), &profile)
	if d.Yes(0.2) {
		askSwitch(w, d, memberToAsk(w), &profile)
	}
	if d.Yes(0.4) {
		w.After(d.Duration(0, 4*(w.Set.DelayMax+w.Set.SyncMax)), func() { afterTune(w, d, l) })
	}
}

// askSwitch asks a member for a seal. Sometimes the operator does not know the last profile.
func askSwitch(w *World, d draw.Chance, m *node.Member, now *protocol.Profile) {
	s := sealTo(w, d, now)
	if m == nil || s == nil {
		return
	}
	if d.Yes(0.1) && s.Profile.Version > 2 {
		s.Profile.Version--
	}
	if w.Set.Targets.All && w.Set.Mutant == "" && w.From(wrongSeals).Yes(0.2) {
		wrongSeal(w, s)
		return
	}
	w.Count(switchesAsked)
	w.Set.Tuned = s.Profile.Values.Over(w.Set.Tuned)
	if s.Profile.Core == w.Set.CoreOf(now).Name {
		w.Count(switchesWithin)
	}
	w.Tracef("FAULT %s is asked for version %d of the profile, core %s with %d instances, merged %t: %s", m.ID,
		s.Profile.Version, s.Profile.Core, s.Instances, s.Merged, s.Profile.Values)
	patience := d.Duration(w.Set.Election, 20*w.Set.Election)
	w.Ask(m, cluster.Operation{Kind: cluster.Switch, Seal: *s}, patience, func(error) {})
}

// sealTo draws a seal behind a profile; nil: there is none. While lanes are on, the seal is refused.
func sealTo(w *World, d draw.Chance, now *protocol.Profile) *protocol.Seal {
	if !w.Set.Targets.All && !w.Set.laneless(now) || now.Version == 0 {
		return nil
	}
	core := w.Set.CoreOf(now)
	to, v := core, now.Values
	if others := switchTargets[core.Name]; len(others) > 0 && d.Yes(0.7) {
		to = registry.CoreOf(others[d.Below(len(others))])
	}
	if to != core {
		v = carried(w, to, v)
	}
	s := &protocol.Seal{Instances: 1, Merged: registry.Coded(to) && d.Yes(0.5)}
	kind := order.KindSingle
	if s.Merged {
		s.Instances, kind = 1+d.Below(4), order.KindNiagara
	}
	if many := w.From(wovenSeals); to.Judged.ManyLead && many.Yes(0.4) {
		s.Merged, s.Instances, kind = true, 1+many.Below(4), order.KindNiagara
	}
	v = ledUnder(to, s, v)
	if w.Set.Targets.All {
		v = varied(w, to, s, v)
	}
	if s.Merged && to.Judged.ManyLead {
		v = roomy(v)
	}
	s.Profile = protocol.Profile{Version: now.Version + 1, Core: to.Name, Values: common.Order.Set(v, string(kind)),
		Since: w.Now().Milliseconds()}
	return s
}

// laneless reports whether there are no lanes under a profile.
func (s *Settings) laneless(p *protocol.Profile) bool {
	text, _ := p.Values.Get("lanes")
	return text != "true"
}

// carried are the values that another core keeps, with those that the run's settings have for it.
func carried(w *World, to *protocol.Info, v setting.Values) setting.Values {
	v = to.Settings.Only(w.Set.Core.Own).Over(common.Settings.Only(v))
	if !registry.Coded(to) {
		v = copied(v)
	}
	return v
}

// ledUnder are values with the leaders that the instances behind a seal can have.
func ledUnder(to *protocol.Info, s *protocol.Seal, v setting.Values) setting.Values {
	switch {
	case s.Merged && to.Judged.ManyLead:
		return common.Leaders.Set(v, protocol.LeadersAll)
	case !s.Merged || common.Leaders.In(v) == protocol.LeadersAll:
		return v.Without(common.Leaders.Name)
	}
	return v
}

package fault

import (
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Profiles behind a seal may differ from the one before it in all settings: quorums, zones, epochs, placement, times,
// and lanes. In other runs they differ in the core, the order and the number of instances alone.

// targetsOfRun draws which profiles are behind the seals of a run, and targetsInRun draws each of them.
var (
	targetsOfRun = draw.New("what seals change")
	targetsInRun = draw.New("what a seal changes")
)

// wrongSeals draws seals that have no effect. Searches for mutants have none.
var wrongSeals = draw.New("wrong seals")

var (
	sealsVoid       = count.New("void_seals_proposed", "void seals proposed", count.Staged)
	quorumsSwitched = count.New("switches_to_other_quorums", "switches to other quorums", count.Bodiless)
	lanesLeft       = count.New("lanes_left_for_a_switch", "lanes left for a switch", count.Staged)
	lanesBehind     = count.New("switches_to_lanes", "switches to lanes", count.Staged)
)

// allTargets is the share of runs with switches in which profiles may differ in all settings.
const allTargets = 0.5

// drawTargets draws which profiles are behind the seals. all: they differ in all settings.
func (s *Settings) drawTargets(d draw.Chance, all bool) {
	if s.Targets.All = !s.staged() && (all || d.Yes(allTargets)); !s.Targets.All {
		return
	}
	if s.Quickest == 0 {
		s.drawTunable(d)
	}
	if !d.Yes(0.6) {
		return
	}
	s.Targets.Quorums = someQuorums(d, s.Nodes)
	_, _, rows, zones := s.Targets.Quorums.Parts()
	if rows+zones.Count > 0 && len(s.Zones) == 0 && d.Yes(0.5) {
		s.placeInZones(d, zones)
	}
}

// someQuorums draws quorums of this many voters that are not majorities.
func someQuorums(d draw.Chance, voters int) quorum.System {
	switch d.Below(4) {
	case 0:
		return quorum.InGrid(1 + d.Below(voters))
	case 1:
		z := quorum.Zones{Count: 1 + d.Below(min(voters, zoneNames))}
		z.Lost, z.Down = d.Below(z.Count), d.Below(2)
		return quorum.InZones(z)
	}
	decide := 1 + d.Below(voters)
	return quorum.Sizes(voters+1-decide, decide)
}

// possibleQuorums are those that instances of the run may have.
func (s *Settings) possibleQuorums() []check.Quorums {
	list := []check.Quorums{s.JudgeQuorums()}
	if !s.Targets.Quorums.Majority() {
		list = append(list, node.QuorumsOf(&s.Targets.Quorums))
	}
	return list
}

// mayBeFlexible reports whether quorums that are not majorities are possible.
func (s *Settings) mayBeFlexible() bool { return s.Flexible() || !s.Targets.Quorums.Majority() }

// wrongSeal has an operator ask for what is refused, or the leader propose a seal that no member proposes, and that
// counts nowhere.
func wrongSeal(w *World, s *protocol.Seal) {
	d, m, l := w.From(wrongSeals), memberToAsk(w), w.Leader()
	switch kind := d.Below(4); {
	case kind == 0 && m != nil:
		s.Instances = 0
		w.Ask(m, cluster.Operation{Kind: cluster.Switch, Seal: *s}, w.Set.Election, func(error) {})
		return
	case l == nil || l.Witness.Latest.Config.Joint():
		return
	case kind == 1:
		s.Profile.Version++
	}
	if s.Members = l.Witness.Latest.Config.Clone(); s.Profile.Version == s.Members.Profile.Version+1 {
		s.Members.Members[0].Name += "?"
	}
	w.Count(sealsVoid)
	w.Tracef("FAULT %s proposes a seal that counts nowhere, version %d of the profile", l.ID, s.Profile.Version)
	l.WhenAwake(func() {
		if l.Up {
			l.InForce[0].Step(protocol.Propose{Entries: []protocol.Entry{protocol.NewSeal(*s)}})
		}
	})
}

// leaveLanes has an operator turn lanes off, and change the protocol after that.
func leaveLanes(w *World, d draw.Chance, now *protocol.Profile) {
	w.Count(lanesLeft)
	next := now.Next(lane.On.Set(now.Values, false), w.Now().Milliseconds())
	next.Earlier = nil
	askTune(w, memberToAsk(w), next)
	w.After(d.Duration(0, 2*w.Set.Election), func() {
		if !w.Calm {
			askSwitch(w, d, memberToAsk(w), &next)
		}
	})
}

// varied are the values of a profile behind a seal, with other values of some settings.
func varied(w *World, to *protocol.Info, seal *protocol.Seal, v setting.Values) setting.Values {
	d, s := w.From(targetsInRun), &w.Set
	v = variedTimes(s, d, v)
	has := func(a setting.Any, share float64) bool { return to.Settings.Has(a) && d.Yes(share) }
	if has(quorum.Setting, 1) {
		v = variedQuorums(w, d, v)
	}
	if has(epochs.Setting, 0.5) {
		v = epochs.Setting.Set(v, someEpochs(d))
	}
	if has(relay.Groups, 0.2) {
		v = relay.Groups.Set(v, d.Below(3))
	}
	if has(iss.NoSkip, 0.2) {
		v = iss.NoSkip.Set(v, d.Yes(0.5))
	}
	if has(iss.SkipWait, 0.2) {
		v = iss.SkipWait.Set(v, d.Duration(0, s.Heartbeat))
	}
	if registry.Coded(to) && s.Bodies.Share > 0 && !s.mayBeFlexible() && d.Yes(0.3) {
		v = coded(s, d, v)
	}
	if has(lane.On, 0.4) && !seal.Merged {
		w.Count(lanesBehind)
		v = lane.On.Set(v, true)
	}
	return v
}

// variedTimes draws other times, within the limits of tunes.
func variedTimes(s *Settings, d draw.Chance, v setting.Values) setting.Values {
	for _, k := range knobs {
		if timing := common.Time.Find(k.name) != nil; timing && d.Yes(0.2) {
			v = k.turn(s, d, v)
		}
	}
	return v
}

// variedQuorums draws the run's other quorums, or majorities. They are not for values in fragments, which fewer members
// than a majority may have to make whole.
func variedQuorums(w *World, d draw.Chance, v setting.Values) setting.Values {
	y, s := quorum.System{}, &w.Set
	switch d.Below(4) {
	case 0, 1:
		y = s.Targets.Quorums
	case 2:
		y = s.Quorums
	}
	if s.codes() || s.Bodies.Share > 0 && slices.Contains(s.Protocol.Placements, protocol.PlacementCode) {
		y = quorum.System{}
	}
	if v = v.Without(quorum.Setting.Name); !y.Majority() {
		w.Count(quorumsSwitched)
		v = quorum.Setting.Set(v, y)
	}
	return v
}

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

// Operators tune settings that all members share, while the cluster runs.

var faultTune = &Fault{Name: "tune", Does: "the operator changes settings"}

func init() {
	faultTune.Draw = (*Settings).drawTunes
	faultTune.Strike = func(w *World, _ *node.Member) { tune(w) }
}

// tunesInRun draws what operators tune during a run.
var tunesInRun = draw.New("tunes")

var tunesProposed = count.New("tunes", "tunes", count.Bodiless)

// tuneSettings say how operators tune.
type tuneSettings struct {
	// Follow is the share of tunes that are followed by another fault at once.
	Follow float64
	// Leases: tunes are stories of leases. See leasetune.go.
	Leases bool
}

// tuneMutants begins the names of the mutants that tunes find. Searches for others have no tunes: with each fault more
// they take longer.
const tuneMutants = "tune-"

// laneMutants begins the names of those among them that stories of leases do not find.
const laneMutants = "tune-lanes-"

// drawTunes draws whether operators tune. Leases may then be switched on at any time, so clocks are never further
// apart than leases allow.
func (s *Settings) drawTunes(d draw.Chance) {
	if s.Mutant != "" && !strings.HasPrefix(s.Mutant, tuneMutants) {
		return
	}
	staged := s.staged()
	if s.Protocol.Core.Judged.Fixed || s.Protocol.Quorums != nil || !d.Yes(0.4) || staged && d.Yes(0.8) {
		return
	}
	s.Faults[faultTune] = s.Election * time.Duration(1+d.Below(10))
	s.Tunes.Follow = d.Share()
	s.drawTunable(d)
	if !staged && s.Nodes >= 3 && !strings.HasPrefix(s.Mutant, laneMutants) && d.Yes(leaseTunes) {
		s.tuneLeases(d)
	}
}

// staged reports whether a run has stories that need a certain order of events.
func (s *Settings) staged() bool {
	return s.Faults[faultStraggle]+s.Faults[faultPromise]+s.Faults[faultLate] > 0
}

// drawTunable draws the limits of settings that change during a run, and a load that uses lanes.
func (s *Settings) drawTunable(d draw.Chance) {
	s.Quickest = max(3*s.leastBeat(), s.Election/time.Duration(1+d.Below(4)))
	s.setDrift(min(s.Drift, leaseDrift))
	s.Core.MaxClockDrift = s.neededDrift()
	if s.TunesLanes() && s.Load.Early+s.Load.Blind == 0 {
		s.Load.Early, s.Load.Blind = d.Share(), d.Share()
	}
}

// leaseTunes is the share of runs with tunes in which these are stories of leases.
const leaseTunes = 0.2

func (s *Settings) describeTunes() string {
	if s.Faults[faultTune] == 0 {
		return ""
	}
	return fmt.Sprintf("tunes: election timeouts from %s on, %.0f%% are followed by others\n", s.Quickest, 100*s.Tunes.Follow)
}

// tune has an operator change settings, or two operators at the same time.
func tune(w *World) {
	d, l := w.From(tunesInRun), w.Leader()
	if l == nil {
		return
	}
	if w.Set.Tunes.Leases {
		tuneLease(w, d, l)
		return
	}
	profile := l.Witness.Latest.Config.Profile
	askTune(w, l, turned(w, d, &profile))
	if d.Yes(0.2) {
		askTune(w, memberToAsk(w), turned(w, d, &profile))
	}
	if d.Yes(w.Set.Tunes.Follow) {
		w.After(d.Duration(0, 2*(w.Set.DelayMax+w.Set.SyncMax)), func() { afterTune(w, d, l) })
	}
}

// afterTune injects another fault while the tune is in progress: mostly at the leader l.
func afterTune(w *World, d draw.Chance, l *node.Member) {
	if w.Calm || !l.Up {
		return
	}
	switch d.Below(6) {
	case 0:
		stopMember(w, l)
	case 1:
		cutLinks(w, faultIsolate, l)
	case 2:
		cutLinks(w, faultPartition, l)
	case 3:
		transferLeadership(w, l)
	case 4:
		if other := w.UpAnd(func(m *node.Member) bool { return m != l }); len(other) > 0 {
			leaveAway(w, other[w.Among(len(other))])
		}
	case 5:
		powerLoss(w)
	}
}

// turned draws the profile after the one that an operator knows. Sometimes the operator does not know the last one.
func turned(w *World, d draw.Chance, now *protocol.Profile) protocol.Profile {
	v := now.Values
	if now.Version == 0 {
		v = values(&w.Set.Core)
	}
	var has []knob
	for _, k := range knobs {
		if k.has == nil || k.has(&w.Set) {
			has = append(has, k)
		}
	}
	for more := true; more; more = d.Yes(0.4) {
		v = has[d.Below(len(has))].turn(&w.Set, d, v)
	}
	v = turnPlacement(w, v)
	if core := w.Set.CoreOf(now); w.Set.Targets.All {
		v = setting.Union(common.Settings, core.Settings).Only(v)
		if !registry.Coded(core) {
			v = copied(v) // as Choice.Tune sees to
		}
		if common.Order.In(v) != string(order.KindNiagara) && !registry.Coded(core) {
			v = v.Without(common.Leaders.Name)
		}
	}
	next := now.Next(v, w.Now().Milliseconds())
	if next.Earlier = nil; d.Yes(0.1) && next.Version > 1 {
		next.Version--
	}
	return next
}

// askTune asks a member for a profile.
func askTune(w *World, m *node.Member, p protocol.Profile) {
	if m == nil {
		return
	}
	w.Count(tunesProposed)
	w.Set.Tuned = p.Values.Over(w.Set.Tuned)
	w.Tracef("FAULT %s is asked for version %d of the profile: %s", m.ID, p.Version, p.Values)
	patience := w.From(tunesInRun).Duration(w.Set.Election, 20*w.Set.Election)
	w.Ask(m, cluster.Operation{Kind: cluster.Tune, Changes: []protocol.Change{{Kind: protocol.Tune, Profile: &p}}},
		patience, func(error) {})
}

package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
)

// The log is fitted to its load: see node/fitting.go. The fault is what an operator does meanwhile.

var faultFit = &Fault{Name: "fit",
	Does: "the operator changes the setting fit, or another one, while fitters change the profile"}

func init() {
	faultFit.Draw = (*Settings).drawFit
	faultFit.Strike = func(w *World, _ *node.Member) { meddle(w) }
}

// fitsInRun draws what operators do while fitters change the profile.
var fitsInRun = draw.New("fits")

var (
	fitsTuned  = count.New("fit_tunes", "tunes of the setting fit", count.Bodiless)
	fitsRaced  = count.New("fit_races", "changes of operators while a fitter makes one", count.Bodiless)
	fitsStruck = count.New("fit_struck", "leaders struck while their fitter makes a change", count.Bodiless)
)

// fitShare is the share of runs in which the log is fitted to its load. In contraryShare of these the costs are drawn,
// because no simulated load asks for many changes.
const (
	fitShare      = 0.2
	contraryShare = 0.7
)

// fitMutants begins the names of the mutants of fitters. Searches for these have fitters in all runs, and those for
// others in none.
const fitMutants = "fit-"

// noFitMutant breaks nothing, in runs like those of the mutants of fitters.
const noFitMutant = fitMutants + "none"

// drawFit draws whether the log is fitted to its load. Members are then prepared for all changes, as for switches.
func (s *Settings) drawFit(d draw.Chance) {
	sought := strings.HasPrefix(s.Mutant, fitMutants)
	if s.Mutant != "" && !sought || !s.Protocol.Serves() || s.Keyed || s.Flexible() || s.staged() ||
		!d.Yes(fitShare) && !sought {
		return
	}
	f := &s.Fit
	f.Second = d.Duration(s.Election/8, s.Election/2)
	f.Patience = fit.Patience{Lasts: 2 * time.Second, Waits: time.Duration(3+d.Below(4)) * time.Second,
		Avoids: time.Duration(10+d.Below(30)) * time.Second}
	f.Contrary = sought || d.Yes(contraryShare)
	if rarer := time.Duration(1 + d.Below(5)); rarer > 1 { // under many faults there is no time for a change
		for x := range s.Faults {
			s.Faults[x] *= rarer
		}
	}
	s.Faults[faultFit] = s.Election * time.Duration(3+d.Below(20))
	s.Chaos += s.Chaos / 2
	s.Switches, s.Targets.All = true, true
	s.Targets.Quorums = quorum.System{} // values in fragments need majorities
	if s.Quickest == 0 {
		s.drawTunable(d)
	}
}

// foundFit gives a log that is fitted its choice, and a profile that says so. Settings that no server begins with, as
// an order that the protocol's name does not say, have no choice: then nothing is fitted.
func (s *Settings) foundFit() {
	if s.Fit.Second == 0 {
		return
	}
	v := common.Instances.Set(s.Profile.Values, s.Instances)
	choice, err := s.Protocol.Choose(v, s.Nodes)
	if err != nil {
		s.Fit, s.Faults[faultFit] = node.FitSettings{}, 0
		return
	}
	s.Fit.Choice = choice
	s.Profile.Values = common.Fit.Set(choice.Profile(), protocol.FitOn)
}

func (s *Settings) describeFit() string {
	f := &s.Fit
	if f.Second == 0 {
		return ""
	}
	return fmt.Sprintf("fitted each %s, patience %v, drawn costs %t\n", f.Second, f.Patience, f.Contrary)
}

// judgesOfFits returns what judges know of the patience of fitters.
func (s *Settings) judgesOfFits() judge.Fits {
	f := &s.Fit
	real := func(d time.Duration) time.Duration { return time.Duration(float64(d) * f.Second.Seconds()) }
	return judge.Fits{Waits: real(f.Patience.Waits), Avoids: real(f.Patience.Avoids - 3*time.Second), Remembered: 8}
}

// Fits implements node.Observer. Sometimes another change, or a fault, comes at the same time.
func (w *World) Fits(m *node.Member, change *judge.Fitted, op *cluster.Operation, patience time.Duration,
	then func(error)) {
	d := w.From(fitsInRun)
	var p *protocol.Profile
	switch op.Kind {
	case cluster.Tune:
		p = op.Changes[0].Profile
	case cluster.Switch:
		p = &op.Seal.Profile
	}
	if p != nil {
		w.Court.Fits.Asks(change, p)
		w.Set.Tuned = p.Values.Over(w.Set.Tuned)
	}
	if now := m.Witness.Latest.Config.Profile; !w.Calm && d.Yes(0.15) {
		w.Count(fitsRaced)
		w.After(d.Duration(0, 2*(w.Set.DelayMax+w.Set.SyncMax)), func() { race(w, d, &now) })
	}
	w.Ask(m, *op, patience, then)
	if !w.Calm && d.Yes(0.15) {
		w.Count(fitsStruck)
		w.After(d.Duration(0, 4*(w.Set.DelayMax+w.Set.SyncMax)), func() { afterTune(w, d, m) })
	}
}

// race has an operator change a profile that a fitter changes, too.
func race(w *World, d draw.Chance, now *protocol.Profile) {
	switch {
	case w.Calm:
	case d.Yes(0.5):
		askTune(w, memberToAsk(w), turned(w, d, now))
	default:
		askSwitch(w, d, memberToAsk(w), now)
	}
}

// meddle has an operator change the setting fit, or anything else.
func meddle(w *World) {
	d, l := w.From(fitsInRun), w.Leader()
	if l == nil {
		return
	}
	now := l.Witness.Latest.Config.Profile
	if d.Yes(0.5) {
		race(w, d, &now)
		return
	}
	w.Count(fitsTuned)
	mode := protocol.FitOn
	if common.Fit.In(now.Values) == protocol.FitOn && d.Yes(0.5) {
		mode = [...]protocol.Fit{protocol.FitOff, protocol.FitAdvise}[d.Below(2)]
	}
	next := now.Next(common.Fit.Set(now.Values, mode), w.Now().Milliseconds())
	next.Earlier = nil
	askTune(w, memberToAsk(w), next)
}

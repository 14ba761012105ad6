package fault

import (
	"math/rand/v2"
	"slices"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
)

// RunChance draws most settings of a run, and then all events that have no other source.
var RunChance = draw.New("run")

// Sources that several drawings share.
var (
	fromInstances = draw.New("instances") // instances with merged logs, or groups of keys
	fromMeeting   = draw.New("meeting faults")
	firstProfiles = draw.New("first profiles")
)

// drawing is a part of a run's settings that the seed draws.
type drawing struct {
	from *draw.Source
	draw func(s *Settings, d draw.Chance)
	// fault, if set, replaces from and draw with the fault's Source and Draw. A run without the fault does not draw it.
	fault *Fault
}

// drawings are the parts in their order. The order matters: later parts read the settings of earlier ones, and may
// change them. Faults that are not listed here follow, in the order of Faults. A new part is added at the end.
var drawings = []drawing{
	{from: RunChance, draw: (*Settings).drawTimes},
	{from: RunChance, draw: (*Settings).drawClients},
	{from: RunChance, draw: (*Settings).drawLinks},
	{from: RunChance, draw: (*Settings).drawDisks},
	{from: RunChance, draw: (*Settings).drawRaft},
	{from: RunChance, draw: (*Settings).drawUsual},
	{from: RunChance, draw: (*Settings).drawChurn},
	{from: RunChance, draw: (*Settings).place},
	{from: draw.New("bodies"), draw: (*Settings).drawBodies},
	{from: RunChance, draw: (*Settings).keepLog},
	{from: fromInstances, draw: (*Settings).drawWeave},
	{fault: faultFreeze},
	{fault: faultGarble},
	{fault: faultState},
	{fault: faultRot},
	{fault: faultWipe},
	{from: draw.New("large commands"), draw: (*Settings).drawLarge},
	{fault: faultIO},
	{fault: faultFull},
	{from: draw.New("backlog"), draw: (*Settings).drawBacklog},
	{from: draw.New("turn limits"), draw: (*Settings).drawTurnLimits},
	{from: draw.New("lines"), draw: (*Settings).drawLines},
	{from: draw.New("pipes"), draw: (*Settings).drawPipes},
	{from: draw.New("load"), draw: (*Settings).drawLoad},
	{from: draw.New("withdrawals"), draw: (*Settings).drawWithdrawals},
	{from: draw.New("astray state machines"), draw: (*Settings).drawAstray},
	{from: draw.New("births"), draw: (*Settings).drawBirths},
	{from: draw.New("founded apart"), draw: (*Settings).drawApart},
	{from: draw.New("namesakes"), draw: (*Settings).drawNamesakes},
	{from: fromMeeting, draw: (*Settings).drawMeet},
	{from: draw.New("brief leaders"), draw: (*Settings).drawBrief},
	{from: fromMeeting, draw: (*Settings).isolateLeaders},
	{fault: faultHotCopy},
	{from: draw.New("aimed faults"), draw: (*Settings).drawAim},
	{from: draw.New("writer"), draw: (*Settings).drawWriter},
	{from: draw.New("early answers"), draw: (*Settings).drawEarly},
	{from: fromInstances, draw: (*Settings).drawKeyed},
	{fault: faultHold},
	{fault: faultHubs},
	{fault: faultPromise},
	{from: node.UnequalMembers, draw: (*Settings).drawUnequal},
	{from: draw.New("epochs"), draw: (*Settings).drawEpochs},
	{fault: faultStraggle},
	{fault: faultMove},
	{from: draw.New("killed processes"), draw: (*Settings).drawKills},
}

// DrawSettings makes the settings of a seed. rng is the source of the run itself, which draws from it after that.
func DrawSettings(o *Options, rng *rand.Rand) Settings {
	s, chance := choose(o), draw.Begin(o.Seed)
	for _, x := range allDrawings() {
		if f := x.fault; f != nil && slices.Contains(o.Without, f.Name) {
			continue
		}
		if x.from == RunChance {
			x.draw(&s, draw.Chance{Rand: rng})
		} else {
			x.draw(&s, chance.From(x.from))
		}
	}
	s.Stretch()
	s.Core.Own = o.Own.Over(s.Protocol.Own).Over(s.Core.Own)
	s.fix()
	s.foundProfile(chance.From(firstProfiles))
	s.foundSwitching()
	s.drawOtherFlags(chance.From(otherFlagRuns))
	s.foundFit()
	return s
}

// allDrawings returns the drawings, including those of all faults.
func allDrawings() (all []drawing) {
	drawn := map[*Fault]bool{}
	for _, x := range drawings {
		if f := x.fault; f != nil {
			x, drawn[f] = f.drawing(), true
		}
		all = append(all, x)
	}
	for _, f := range Faults {
		if f.Draw != nil && !drawn[f] {
			all = append(all, f.drawing())
		}
	}
	return all
}

func (f *Fault) drawing() drawing { return drawing{from: f.Source, draw: f.Draw, fault: f} }

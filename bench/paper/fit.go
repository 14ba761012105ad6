package paper

import (
	"fmt"
	"strings"
	"time"
)

const (
	seriesFit = "fit on"
	// byPhase names x of the figures of a phase, bySecondOfDay that of a timeline, byDay that of a whole day.
	byPhase       = "phase"
	bySecondOfDay = "seconds since the begin of the day"
	byDay         = "whole day"
	// dayNet has five regions, each far from the others, and the rate at which a member sends to all others together.
	dayNet = "regions=us-east-1+eu-west-1+ap-northeast-1+ap-south-1+ap-southeast-2,bandwidth=50mbit"
	// dayLog is small: members delete what they no longer need.
	dayLog = 32 << 20
	// dayBeat is shorter than the round trip between the farthest members.
	dayBeat = 250 * time.Millisecond
)

// fixedProfiles are the contestants that stay as they began.
var fixedProfiles = []string{seriesRaft, seriesCoded, seriesNiagara, seriesLCR, seriesMultiPaxos, seriesISS}

// fitDay is the day that the rules were made for.
var fitDay = []Phase{
	{Name: "small puts near the leader", Clients: 32, At: []int{1}, Sizes: []int{64}},
	{Name: "values of 512 KiB near the leader", Clients: 8, At: []int{1}, Sizes: []int{512 << 10}},
	{Name: "small puts in another region", Clients: 32, At: []int{3}, Sizes: []int{64}},
	{Name: "blind puts in all regions", Clients: 60, Sizes: []int{64}, Blind: 1},
	{Name: "puts of 12 KiB in all regions", Clients: 60, Sizes: []int{12 << 10}},
	{Name: "the same, one member slow", Clients: 60, Sizes: []int{12 << 10}, Net: slowly(2)},
	{Name: "the same, it is well again", Clients: 60, Sizes: []int{12 << 10}},
}

// otherDay has loads that the rules were not made for.
var otherDay = []Phase{
	{Name: "values of 64 B to 128 KiB at two members", Clients: 24, At: []int{1, 2},
		Sizes: []int{64, 64, 64, 1 << 10, 1 << 10, 4 << 10, 32 << 10, 128 << 10}},
	{Name: "bursts of a second in all regions", Clients: 60, Sizes: []int{256}, Burst: time.Second},
	{Name: "two of five members slow", Clients: 40, Sizes: []int{1 << 10}, Blind: 0.3, Net: slowly(3, 5)},
	{Name: "a rise and a fall in all regions", Clients: 60, Sizes: []int{64, 64, 64, 16 << 10}, Wave: true},
	{Name: "bursts of 3 s, a quarter blind, three members", Clients: 30, At: []int{3, 4, 5}, Sizes: []int{64, 8 << 10},
		Blind: 0.25, Burst: 3 * time.Second},
}

// slowly is dayNet with slow members: half a second from all others, and with a tenth of the rate.
func slowly(members ...int) string {
	var b strings.Builder
	b.WriteString(dayNet)
	for _, m := range members {
		fmt.Fprintf(&b, ";%d~*:latency=250ms;%d:bandwidth=5mbit", m, m)
	}
	return b.String()
}

// dayTimes are those of a day in full, and of a quick one.
var (
	fullDay  = Day{Length: time.Minute, After: 15 * time.Second, Every: time.Second, Part: bySecondOfDay}
	quickDay = Day{Length: 20 * time.Second, After: 8 * time.Second, Every: time.Second, Part: bySecondOfDay}
)

const fitText = "One contestant after the other gets the same day of seven loads, a minute each (quick: 20 s). Six " +
	"of them keep their profile; niagara has its leaders spread. \"fit on\" begins as raft and changes its profile, and " +
	"the member that leads, by itself. The bound is the best of the six in each phase. A leader that follows its " +
	"clients can exceed it: the fixed profiles with one leader have it in the first region all day."

const fitOtherText = "Raft, and \"fit on\", which begins as raft, get a day of loads that the rules of the fitter " +
	"were not made for: values of many sizes at once, bursts, two slow members of five, and a number of clients that " +
	"rises and falls. It should never be worse off for having watched."

// dayText is common to both days.
var dayText = []string{
	"Five members in this process are in five regions, with the round trips that come with the program, and each sends " +
		"at most 50 Mbit/s to all others together. Clients propose at the member of their region, and wait for each " +
		"answer. So a load is bounded by round trips or by links, and not by the CPU. Values from 16 KiB on are bodies, as " +
		"in the server. The slow member is half a second away from all others, and sends a tenth of the bytes.",
	"The timeline counts answers in windows of 1 s. The figures of a phase count from 15 s after its begin on (quick: " +
		"8 s), except for those from its begin. On a quick day the fitter's times are a third of its defaults: a gain " +
		"lasts 3.3 s before a change, the fitter waits 10 s after it, and avoids for 3.3 minutes what was taken back.",
	"In the end each answered command must be applied once on each member, in the same order on all of them, no " +
		"refused one may be applied, and the order must agree with the times of calls and answers: a command that was " +
		"called after the answer to another one comes behind it. Blind commands are answered before they have a place in " +
		"the order, and are not in the last comparison.",
}

func dayPlots() []Plot {
	return []Plot{
		{
			Kind: Lines, Title: Throughput.label() + " over the day", Part: bySecondOfDay, XLabel: bySecondOfDay, Y: Throughput,
			LogY: true, Plain: true,
			Caption: "Higher is better. Vertical lines are the begins of phases, triangles are changes of the profile or of " +
				"the leader.",
		},
		{
			Kind: Points, Title: Throughput.label() + " in each phase", XLabel: byPhase, Y: Throughput, LogY: true,
			Caption: "Higher is better.",
		},
	}
}

func fitExperiment() *Experiment {
	e := &Experiment{
		Title: "A day of loads, and a log that fits itself", Source: "braid's own",
		Text:  append([]string{fitText}, dayText...),
		XName: byPhase, Rounds: 1, QuickRounds: 1, Long: true, QuickLimit: 25 * time.Minute, Alone: true,
		Table: []Metric{Throughput, FromBegin, P50, P99, Changes, Failed, Wrong},
	}
	contestants := fixedProfiles
	if fits() {
		contestants = append([]string{seriesFit}, fixedProfiles...)
	}
	e.Cases, e.Claims, e.Plots = dayCases(fitDay, contestants...), fitClaims(len(fitDay)), dayPlots()
	if fits() {
		e.Claims = append(fittedClaims(len(fitDay)), e.Claims...)
	}
	return e
}

func fitOther() *Experiment {
	e := &Experiment{
		Title: "Another day, that no rule was made for", Source: "braid's own",
		Text:  append([]string{fitOtherText}, dayText...),
		XName: byPhase, Rounds: 1, QuickRounds: 1, Long: true, QuickLimit: 10 * time.Minute, Alone: true,
		Table: []Metric{Throughput, FromBegin, P50, P99, Changes, Failed, Wrong},
	}
	contestants := []string{seriesRaft}
	if fits() {
		contestants = []string{seriesFit, seriesRaft}
		e.Claims = otherClaims(len(otherDay))
	}
	e.Cases, e.Plots = dayCases(otherDay, contestants...), dayPlots()
	e.Claims = append(e.Claims, historyClaim())
	return e
}

// quickHaste divides the times of the fitter on a quick day, as the phases are shorter.
const quickHaste = 3

// daySetup is a cluster of one of the contestants.
func daySetup(series string) Setup {
	s := Setup{Protocol: series, Members: 5, Net: dayNet, Heartbeat: dayBeat, SnapshotBytes: dayLog, Positions: true}
	switch series {
	case seriesNiagara:
		s.set("leaders=spread")
	case seriesFit:
		s.Protocol = seriesRaft
		s.set("fit=on")
	}
	return s
}

// fits reports whether this version has the setting fit.
func fits() bool {
	_, err := daySetup(seriesFit).options()
	return err == nil
}

// dayCases are a day of each contestant, in full and quick.
func dayCases(phases []Phase, contestants ...string) (cases []Case) {
	for _, times := range []Day{fullDay, quickDay} {
		d := times
		d.Phases = phases
		quick := times.Length == quickDay.Length
		for _, series := range contestants {
			s, w := daySetup(series), Work{Day: &d}
			if quick {
				s.Haste = quickHaste
			}
			if shape := s.shape(); !shape.Spread() && series != seriesISS {
				w.Leader = 1
			}
			cases = append(cases, Case{Series: series, Part: byDay, X: 1, Setup: s, Work: w, Full: !quick, Quick: quick})
		}
	}
	return cases
}

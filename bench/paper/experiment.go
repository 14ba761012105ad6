package paper

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/protocol/setting"
)

// Setup is the configuration of a cluster. Cases with equal setups share a cluster.
type Setup struct {
	Protocol string // one of braid's own; empty: raft
	Members  int    // 0: 3
	Learners int    // of them, the last ones, which do not vote
	// Values are settings that all protocols have, and the protocol's own.
	Values setting.Values
	// Cards is the number of network cards of each member, with an address each; 0: one.
	Cards int
	// Model makes it a setup of the cost model (package scale), which computes the figures: with a given number of cores
	// for each member, or with 0 as measured here, with all members and the load on the same machine.
	Model bool
	Cores int

	// Raft's four optimisations; the zero value is all of them at their defaults.
	NoBatching       bool
	NoPipeline       bool
	NoParallelAppend bool
	NoAsyncApply     bool
	BatchCommands    int // commands at which a batch is full; 0: no limit
	Depth            int // batches in progress; 0: adaptive

	Net       string        // link emulation, as the flag --net; empty: bare loopback
	ApplyCost time.Duration // the time to apply one command, without using the CPU
	Heartbeat time.Duration // 0: 250 ms
	// Keys is the number of keys that members store, each with the bytes of a command as its value; 0: none.
	Keys int
	// SnapshotBytes is the size of the log between snapshots; 0: braid's default. Bodies are kept as long as the log.
	SnapshotBytes int
	// Processes: each member is a separate process, and clients' commands reach it over TCP from the measuring one. So
	// its resource use is known, and it can be killed.
	Processes bool
	// HTTP: members serve the map service of package mapkv, and clients use that. It is not for processes.
	HTTP bool
	// Haste divides the times of the fitter, for days that are shorter; 0: 1.
	Haste int
	// Positions: the result of a command is its position in the order, from 0 on.
	Positions bool
	// Bare: servers answer by HTTP at once. There is no log, and no protocol.
	Bare bool
}

// set adds settings, NAME=VALUE each.
func (s *Setup) set(settings ...string) { s.Values = setting.MustParse(settings...).Over(s.Values) }

// Work is the work of one measurement. Mostly that is exactly Requests commands.
type Work struct {
	Requests int
	Payload  int     // bytes of a command; 0: 16
	Body     int     // bytes of its body, the large value that it writes; 0: none
	Rate     float64 // requests a second; 0: all at once
	Clients  int     // clients that each wait for an answer; 0: none waits

	// For, if not 0, is the time for which the clients work, in place of Requests. It is no failure if nothing is
	// answered. With a rate no client waits; commands that become due while Inflight commands are in progress are
	// dropped.
	For      time.Duration
	Inflight int
	// Readers are clients that read strongly for that time, each at one of the members; the values come over its network
	// cards. Every WriteEvery-th time they write; 0: never.
	Readers    int
	WriteEvery int
	// Down is the number of followers that are stopped while the clients work, which they do for a time. With Faults
	// members are killed, which must be separate processes. There are clients in closed loops then, or a rate.
	Down   int
	Faults *Faults
	// Day, if not nil, replaces everything but Leader: clients work in closed loops, phase after phase.
	Day *Day
	// At is the place of the clients, or of the receivers at a rate. Blind is the share of commands that may take a
	// lane, and that need not be applied to be answered, unless Confirmed. With Apart it is the share of the clients,
	// all of whose commands are blind; and each client has a key. If Of is not 0, latencies are of the clients of that
	// member alone; there are others then too.
	At        Place
	Blind     float64
	Confirmed bool
	Apart     bool
	// KeySpace, if not 0, is the number of keys that commands touch: one that all clients use, for a share Hot of all
	// commands, and others that only the clients of one member use. Commands are not blind then.
	KeySpace int
	Hot      float64
	// Writes is the share of writes among requests by HTTP; the others are reads in the log.
	Writes float64
	Of     int
	// Net, if not empty, replaces Setup.Net, from then on and on the same cluster. Leader is the member that leads; 0:
	// any.
	Net    string
	Leader int
	// Reads is the number of reads of the last request's body after that, one after the other, from a new leader.
	Reads int
}

// bytes is the size of the value that a request writes; 0 if it does not matter.
func (w *Work) bytes() int { return w.Payload + w.Body }

// Case is one point of one series: a setup with some work.
type Case struct {
	Series string
	// Part names x if it is not the experiment's XName: a side experiment, whose series are separate from others of the
	// same name.
	Part  string
	X     float64
	Setup Setup
	Work  Work
	// Times is the number of repetitions of the work in each round, for short work; 0: once.
	Times int
	// Full excludes the case from quick runs. Quick excludes it from full ones, which have another one in its place.
	Full, Quick bool
}

// Curve has the paper's measurements.
type Curve struct {
	Name string
	Like string // the series of ours that corresponds to it
	X, Y []float64
}

// Plot is one picture.
type Plot struct {
	Kind       PlotKind
	Title      string
	Part       string // of these cases
	XLabel     string
	X          Metric // of Scatter and Tradeoff
	Y          Metric
	LogX, LogY bool
	Plain      bool     // of Lines: without dots
	Names      []string // of Points: the names of x = 1, 2, …; nil: the numbers
	Series     []string // nil: all
	Accent     []string // of Bars: the highlighted ones
	Bare       bool     // of Tradeoff: without Case.X next to the dots
	Paper      []Curve  // of metric Y
	Caption    string
}

// PlotKind is the kind of a plot.
type PlotKind string

// The kinds of plots.
const (
	Lines   PlotKind = "lines"   // medians over Case.X, with the range of the rounds
	Points  PlotKind = "points"  // the same for x without an order: side by side, not joined
	Bars    PlotKind = "bars"    // a bar for each series, the median at its only point
	Scatter PlotKind = "scatter" // a dot for each run: Y over X
	// Tradeoff is a line through the medians of Y over those of X, in the order of Case.X.
	Tradeoff PlotKind = "tradeoff"
)

// Claim is a statement of the paper, and a test whether it holds here.
type Claim struct {
	Text  string
	Paper float64 // 0: the paper gives no figure
	Unit  string
	// PaperUnit is the unit of the paper's figure, if that is not Unit: then the two cannot be compared as numbers.
	PaperUnit string
	// Measure computes our figure; false if a necessary measurement is missing.
	Measure func(*Result) (float64, bool)
	// Holds decides whether the figure confirms the claim.
	Holds func(measured float64) bool
	// Off is set if the cost model computes the figure. It returns by how much the model is off from what was measured of
	// the same protocols in the same run, up or down; 1 is exact. Without that, or beyond mostOff, there is no verdict.
	Off func(*Result) (float64, bool)
	// Note explains the figure's computation or limits.
	Note string
	// Remark returns the note if it must be computed. Every braid command lists the experiments at its start, and does
	// not need it.
	Remark func() string
}

// mostOff is how far the model may be off where its figures are claims.
const mostOff = 1.3

// note returns the note about the figure.
func (c *Claim) note() string {
	if c.Remark != nil {
		return c.Remark()
	}
	return c.Note
}

// Experiment is one experiment of a paper.
type Experiment struct {
	Name, Short string // as in [Listed]
	Title       string
	Source      string // paper and section
	// Text explains the comparison in paragraphs, with the differences from the paper.
	Text  []string
	XName string // the meaning of Case.X
	Cases []Case
	Plots []Plot
	// Table lists the metrics of the table; the first one has its range.
	Table  []Metric
	Claims []Claim
	// Fit are measured points to which the cost model is fitted: by one factor on the costs of CPU that were measured
	// separately. Only experiments with models have it.
	Fit []where
	// Long: it takes much longer than the others, so it has QuickRounds rounds in full too, and "all" leaves it out.
	Long bool
	// QuickLimit bounds a quick run with its start and its end; 0: a minute.
	QuickLimit time.Duration
	// Alone: one cluster runs at a time. If CPU is measured, waiting clusters would count too.
	Alone bool
	// Rounds is the number of runs of each case: in full, and in quick mode if there is time.
	Rounds, QuickRounds int
}

// UnknownError indicates the name of an experiment that does not exist.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown experiment %q: there are %s, and all", e.Name, strings.Join(e.Known, ", "))
}

// Select returns the experiments with these names; "all" selects every one that is not long.
func Select(names ...string) ([]*Experiment, error) {
	all := Experiments()
	var known []string
	for _, e := range all {
		known = append(known, e.Name)
	}
	for _, name := range names {
		if name != "all" && !slices.Contains(known, name) {
			return nil, &UnknownError{Name: name, Known: known}
		}
	}
	return slices.DeleteFunc(all, func(e *Experiment) bool {
		return !slices.Contains(names, e.Name) && (e.Long || !slices.Contains(names, "all"))
	}), nil
}

// fullRounds is the least number of complete rounds of a full run.
func (e *Experiment) fullRounds() int {
	if e.Long {
		return max(1, e.QuickRounds)
	}
	return fullRounds
}

// cases returns the cases of a run of the experiment.
func (e *Experiment) cases(quick bool) []Case {
	return slices.DeleteFunc(slices.Clone(e.Cases), func(c Case) bool { return quick && c.Full || !quick && c.Quick })
}

// seriesNames returns the names of the series, in the order of the cases.
func (e *Experiment) seriesNames() []string {
	var names []string
	for i := range e.Cases {
		if !slices.Contains(names, e.Cases[i].Series) {
			names = append(names, e.Cases[i].Series)
		}
	}
	return names
}

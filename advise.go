package braid

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// FitMode says what is done when another protocol, setting or leader would fit the load better. It is the setting
// "fit", which [Node.Tune] changes.
type FitMode = protocol.Fit

// Modes of fitting.
const (
	// FitOff: nothing is measured for it.
	FitOff = protocol.FitOff
	// FitAdvise: the leader says which change would gain how much. It is the default.
	FitAdvise = protocol.FitAdvise
	// FitOn: the leader makes the change, measures, and takes it back if it did not gain enough.
	FitOn = protocol.FitOn
)

// Advice is what the member that leads the global log makes of today's load: the throughput that it expects of each
// protocol, with some settings and a leader, and the change that it wishes for.
type Advice struct {
	// By is the member that decided, At when, by its clock.
	By MemberID
	At time.Time
	// Mode is the setting fit, and Version that of the active profile, when it was decided.
	Mode    FitMode
	Version uint64
	// Costs has each profile that was compared, the active one first, then by expected throughput.
	Costs []FitCost
	// Wish is a change that is expected to gain enough; nil: none is.
	Wish *FitWish
	// Waits says what Wish waits for; "": nothing, so with FitOn it is carried out.
	Waits string
	// Avoids has the changes that were taken back and are not tried again yet.
	Avoids []FitAvoided
	// Reports has what the members measured, one each. A member that did not report in the last seconds has none.
	Reports []FitReport
}

// FitCandidate is a profile, with the member that leads under it.
//
//	Protocol string            // its name
//	Settings map[string]string // those that differ from what a switch to Protocol would keep
//	Leader   MemberID          // the member that should lead; 0: several lead, or it does not matter
//
// Its method Describe(leader string) returns it as people read it; leader is the name of its leader, "": without it.
type FitCandidate = fit.Candidate

// FitCost is what is expected of a profile under today's load. It has the fields of [FitCandidate], too.
//
//	Throughput float64 // commands a second
//	Latency    float64 // the mean time of a command, in seconds
//	Limit      string  // what limits the throughput, in words; "round trips", "leader's link"
//	Excluded   string  // why it is not possible or not allowed now; "": it is
type FitCost = fit.Cost

// FitWish is one change, of the profile or of the member that leads. It has the fields of [FitCandidate], too.
//
//	Version   uint64  // the profile on which it was computed
//	Gain      float64 // the expected throughput as a factor of today's: 1.2 for a fifth more
//	Reason    string  // in figures
//	TakesBack bool    // it takes back an earlier change, which did not gain enough
//	Restores  bool    // a member is missing or slow, and the change lets the others serve again
type FitWish = fit.Wish

// FitAvoided is a change that was taken back. It has the fields of [FitCandidate], too.
//
//	Until int64 // from when it may be tried again, in milliseconds since 1970
type FitAvoided = fit.Avoided

// FitReport is what one member measured within a span of time.
//
//	Member    MemberID
//	Span      time.Duration // about a second
//	Asked     FitLoad       // what clients asked this member for, and was answered within the span
//	Trips     []FitTrip     // round trips to other members; those without a link are left out
//	Links     []FitLink     // what it sent to other members
//	Loops     []float64     // the share of the span in which each instance's event loop was busy, 0…1
//	Apply     float64       // that of applying
//	CPU       float64       // the share of all cores that the process used, 0…1
//	Disk      FitDisk       // what its log did
//	Unapplied uint64        // committed entries that were not applied at the end of the span
type FitReport = fit.Report

// FitLoad counts commands.
//
//	Commands   uint64
//	Bytes      uint64        // of commands and their bodies
//	Blind      uint64        // commands whose results are not needed, and that may take a lane
//	Early      uint64        // those of them that ask to be answered when they are accepted in a lane
//	Large      uint64        // commands with a body
//	LargeBytes uint64        // bytes of these bodies
//	Waited     time.Duration // the sum of the times from each proposal to its answer
type FitLoad = fit.Load

// FitTrip is the shortest round trip to a member within a span.
//
//	To   MemberID
//	Time time.Duration
type FitTrip = fit.Trip

// FitLink is what a member sent to another one.
//
//	To     MemberID
//	Bytes  uint64 // sent within the span
//	Queued uint64 // bytes that waited at the end of the span
type FitLink = fit.Link

// FitDisk is what a member's log did within a span.
//
//	Syncs uint64        // how often it was made durable
//	Time  time.Duration // spent on it, and on writing
//	Bytes uint64        // written
type FitDisk = fit.Disk

// FitStatus is the advice in short, as this member knows it.
type FitStatus struct {
	// Mode is the setting fit of the applied profile.
	Mode FitMode
	// At is when the leader decided last, by its clock; zero: this member knows no decision of the present leader.
	At time.Time
	// Wish and Waits are those of [Advice].
	Wish  *FitWish
	Waits string
	// Changes counts the changes that this member made as the leader since it started, and TakenBack those that took an
	// earlier one back.
	Changes, TakenBack uint64
}

// AdviceError indicates that there is no advice. Nothing happened.
type AdviceError struct {
	Reason string
	Retry  bool // the same call may succeed later: the leader decides about once a second
}

func (e *AdviceError) Error() string { return "braid: advise: " + e.Reason }

// Advise returns the newest decision of the member that leads the global log, as this member knows it: At says when it
// was made, usually less than two seconds ago. It may be called on any member, and changes nothing.
//
// It first makes sure, like [Node.ReadBarrier], that this member is not cut off from the others, and waits for that as
// long as ctx lasts. An [*AdviceError] says why there is no advice. Further errors are those of [Node.ReadBarrier].
func (n *Node) Advise(ctx context.Context) (Advice, error) {
	if err := n.r.AwaitRead(ctx); err != nil {
		return Advice{}, err
	}
	s := n.r.Status()
	if !n.opt.fits() {
		return Advice{}, &AdviceError{Reason: "protocol " + n.opt.choice.Name + " is not compared with others"}
	}
	return adviceOf(&s, n.fitMode(&s))
}

// adviceOf is the advice that a member knows.
func adviceOf(s *replica.Status, mode FitMode) (Advice, error) {
	known := advised(s)
	switch {
	case mode == FitOff:
		return Advice{}, &AdviceError{Reason: "the setting fit is off"}
	case s.Lead.Leader == 0:
		return Advice{}, &AdviceError{Retry: true, Reason: "no leader is known"}
	case known == nil:
		return Advice{}, &AdviceError{Retry: true,
			Reason: fmt.Sprintf("leader %s has not decided yet, as in the seconds after an election", s.Lead.Leader)}
	}
	return newAdvice(known), nil
}

// advised is the newest decision of the present leader; nil: none is known here.
func advised(s *replica.Status) *fit.Published {
	if s.Fit == nil || s.Fit.By != s.Lead.Leader || s.Fit.Mode == FitOff {
		return nil
	}
	return s.Fit
}

// fits reports whether other protocols can take the place of this one.
func (c *config) fits() bool { return c.choice.Serves() }

func (n *Node) fitMode(s *replica.Status) FitMode {
	if !n.opt.fits() {
		return FitOff
	}
	return common.Fit.In(n.describe(s).Values)
}

// fitStatus is the advice in short.
func fitStatus(s *replica.Status, mode FitMode) FitStatus {
	out := FitStatus{Mode: mode, Changes: s.Fitted.Changes, TakenBack: s.Fitted.TakenBack}
	if known := advised(s); known != nil && mode != FitOff {
		out.At, out.Wish, out.Waits = time.UnixMilli(known.At), cloneWish(known.Decision.Wish), known.Decision.Waits
	}
	return out
}

// newAdvice makes an advice that shares nothing with what is published.
func newAdvice(p *fit.Published) Advice {
	d := &p.Decision
	a := Advice{
		By: p.By, At: time.UnixMilli(p.At), Mode: p.Mode, Version: p.Version, Wish: cloneWish(d.Wish), Waits: d.Waits,
		Costs: slices.Clone(d.Costs), Avoids: slices.Clone(d.Avoids), Reports: slices.Clone(p.Reports),
	}
	for i := range a.Costs {
		a.Costs[i].Settings = maps.Clone(a.Costs[i].Settings)
	}
	for i := range a.Avoids {
		a.Avoids[i].Settings = maps.Clone(a.Avoids[i].Settings)
	}
	for i := range a.Reports {
		r := &a.Reports[i]
		r.Trips, r.Links, r.Loops = slices.Clone(r.Trips), slices.Clone(r.Links), slices.Clone(r.Loops)
	}
	return a
}

func cloneWish(w *fit.Wish) *fit.Wish {
	if w == nil {
		return nil
	}
	c := *w
	c.Settings = maps.Clone(w.Settings)
	return &c
}

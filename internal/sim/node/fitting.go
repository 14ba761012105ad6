package node

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// Fitting of the log to its load, by the fitter of production. Each member measures and tells the leader, over the
// links, and the leader's fitter decides.

var (
	fitReports = count.New("fit_reports", "reports for fitters", count.Bodiless)
	fitWishes  = count.New("fit_wishes", "wishes of fitters", count.Bodiless)
)

// FitSettings say how members fit the log to its load.
type FitSettings struct {
	// Second is the time that counts as a second for fitters; 0: nothing is fitted.
	Second time.Duration
	// Patience is in the time of fitters.
	Patience fit.Patience
	// Contrary: drawn costs take the place of the model, because no simulated load asks for many changes.
	Contrary bool
	// Choice is that with which the log began.
	Choice registry.Choice
}

// Time is a time as fitters see it.
func (s *FitSettings) Time(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.Second.Seconds())
}

// fitting is what a member has measured since its last report, and if it leads, its fitter.
type fitting struct {
	m     *Member
	set   *FitSettings
	began time.Duration // of the span, by the member's clock
	asked fit.Load      // at its beginning
	trips map[protocol.MemberID]time.Duration
	sent  map[protocol.MemberID]uint64
	disk  fit.Disk

	fitter *fit.Fitter // nil: another one leads, or none has led yet
	number int         // of the fitter, in the run
	heard  fit.Heard
	wished string // the last wish
	acts   *fulfilment
}

// beginFitting makes the member measure, if the run fits the log.
func (m *Member) beginFitting() {
	set := &m.Env.Set.Fit
	if set.Second == 0 {
		return
	}
	f := &fitting{m: m, set: set}
	f.begin()
	m.fitting = f
	f.later()
}

func (f *fitting) later() {
	f.m.Later(time.Duration(float64(f.set.Second)/f.m.rate), func() {
		f.second()
		f.later()
	})
}

// begin begins another span.
func (f *fitting) begin() {
	f.began = f.m.Clock()
	f.asked, f.disk = f.m.Proposals.Asked, fit.Disk{}
	f.trips, f.sent = map[protocol.MemberID]time.Duration{}, map[protocol.MemberID]uint64{}
}

// second does what a member does once a second.
func (f *fitting) second() {
	m := f.m
	if m.silent || f.mode() == protocol.FitOff {
		f.fitter = nil
		f.begin()
		return
	}
	report := f.report()
	f.begin()
	leader := m.view().Lead().Leader
	f.lookForLeader(leader)
	if leader == m.ID {
		f.hear(report)
	} else if text, err := json.Marshal(report); err != nil {
		m.Env.Violate(m.ID, err)
	} else if leader != 0 {
		f.tell(leader, text)
	}
	if f.ping(); leader == m.ID {
		f.step()
	}
}

// mode is the setting of the active profile.
func (f *fitting) mode() protocol.Fit {
	config := f.m.Applier.Config()
	return common.Fit.In(config.Profile.Values)
}

// report is what the member measured since the last one.
func (f *fitting) report() fit.Report {
	m, t := f.m, f.set.Time
	r := fit.Report{Member: m.ID, Span: t(m.Clock() - f.began), Asked: fit.LoadSince(f.asked, m.Proposals.Asked),
		Disk: f.disk, Loops: make([]float64, len(m.InForce))}
	r.Asked.Waited, r.Disk.Time = t(r.Asked.Waited), t(r.Disk.Time)
	for _, o := range m.Env.Members {
		if trip, ok := f.trips[o.ID]; ok {
			r.Trips = append(r.Trips, fit.Trip{To: o.ID, Time: t(trip)})
		}
		if bytes := f.sent[o.ID]; bytes > 0 {
			queued := m.Env.Net.Link(m.ID, o.ID).Queued(m.Env.Now())
			r.Links = append(r.Links, fit.Link{To: o.ID, Bytes: bytes, Queued: queued})
		}
	}
	for _, s := range m.InForce {
		if added := m.Applier.Added(s.Instance); s.status.Commit > added {
			r.Unapplied += uint64(s.status.Commit - added)
		}
	}
	return r
}

// over carries something to another member as links carry messages: perhaps it is lost, or arrives twice.
func (f *fitting) over(from, to *Member, do func()) {
	w := from.Env
	if w.severed(from, to.ID) || w.Observer.Loses(&protocol.Message{From: from.ID, To: to.ID}) {
		return
	}
	if w.convey(from, to, do); w.Chance(w.Set.Duplicate) {
		w.convey(from, to, do)
	}
}

// tell sends the member that leads a report.
func (f *fitting) tell(leader protocol.MemberID, text []byte) {
	o := f.m.Env.Member(leader)
	f.over(f.m, o, func() {
		var r fit.Report
		if err := json.Unmarshal(text, &r); err != nil {
			o.Env.Violate(o.ID, fmt.Errorf("report %s: %w", text, err))
		} else if o.fitting != nil {
			o.fitting.hear(r)
		}
	})
}

// hear takes in a report. Without a fitter it is of no use.
func (f *fitting) hear(r fit.Report) {
	if f.fitter == nil {
		return
	}
	f.m.Env.Count(fitReports)
	f.heard.Add(r, f.m.Clock())
}

// ping measures the round trips to the other members.
func (f *fitting) ping() {
	m := f.m
	config := m.Applier.Config()
	for _, id := range config.All() {
		if id == m.ID {
			continue
		}
		o, sent := m.Env.Member(id), m.Clock()
		f.over(m, o, func() {
			f.over(o, m, func() {
				if trip, ok := f.trips[id]; m.fitting == f && (!ok || m.Clock()-sent < trip) {
					f.trips[id] = m.Clock() - sent
				}
			})
		})
	}
}

// lookForLeader gives the member a fitter when it begins to lead the global log, and takes it away when another one
// leads. In between, as behind a seal, it stays.
func (f *fitting) lookForLeader(leader protocol.MemberID) {
	switch {
	case leader != 0 && leader != f.m.ID:
		f.fitter = nil
	case leader == f.m.ID && f.fitter == nil:
		f.m.Env.Fitters++
		f.fitter = &fit.Fitter{Patience: f.set.Patience, Mutant: f.m.Env.Set.MutantName()}
		if f.set.Contrary {
			f.fitter.Weigh = contrary(f.m.Env.Set.Seed)
		}
		f.number, f.heard, f.wished, f.acts = f.m.Env.Fitters, fit.Heard{}, "", nil
	}
}

// contrary returns what replaces the model of costs: now and then another candidate is the best one by far. What it
// returns depends on the seed, the profile and the time alone.
func contrary(seed uint64) func(*fit.View, []fit.Cost) {
	const period = 7 * time.Second
	return func(v *fit.View, costs []fit.Cost) {
		if len(costs) < 2 {
			return
		}
		best := 1 + draw.Hashed(seed, uint64(v.Now/period)+v.Profile.Version<<40).Below(2*len(costs))
		for i := range costs {
			c := &costs[i]
			c.Throughput = 100
			if i == best {
				c.Throughput, c.Excluded = 1000, ""
			}
		}
	}
}

// view is what the leader knows, in the time of fitters.
func (f *fitting) view() *fit.View {
	m := f.m
	v := cluster.FitView(m.view(), m.ID, &f.heard, f.set.Second, len(m.Executing) > 0 || f.acts != nil)
	v.Protocol = f.set.Choice.At(&v.Profile, v.Instances).Name
	v.Now, v.Wall = f.set.Time(v.Now), f.set.Time(m.Env.Now()).Milliseconds()
	v.Profile.Since = f.set.Time(time.Duration(v.Profile.Since) * time.Millisecond).Milliseconds()
	return v
}

// step has the fitter decide.
func (f *fitting) step() {
	w, v := f.m.Env, f.view()
	if w.Calm && v.Mode == protocol.FitOn {
		v.Mode = protocol.FitAdvise // no change is made any more
	}
	d := f.fitter.Step(v)
	if d.Event != "" {
		w.Tracef("%s   fitter: %s", f.m.ID, d.Event)
	}
	if d.Wish == nil {
		f.wished = ""
		return
	}
	wish := fmt.Sprintf("%s %v led by %s, of profile %d", d.Wish.Protocol, d.Wish.Settings, d.Wish.Leader, d.Wish.Version)
	if wish != f.wished {
		w.Count(fitWishes)
		w.Tracef("%s   wishes for %s: gain %.2f, %s", f.m.ID, wish, d.Wish.Gain, d.Wish.Reason)
	}
	if f.wished = wish; d.Acts {
		f.fulfil(d.Wish)
	}
}

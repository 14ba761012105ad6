package replica

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// Fitting is how a log is fitted to its load.
type Fitting struct {
	// Every is the time between two reports of a member, and between two steps of the leader's fitter; 0: a second.
	Every time.Duration
	// Fitter makes the fitter of a member that begins to lead; nil: the zero one.
	Fitter func() *fit.Fitter
	// Protocol is the name of the protocol under a profile, in a log of this many instances.
	Protocol func(p *protocol.Profile, instances int) string
	// Act carries a wish out, and returns when it has taken effect. It has to refuse the wish if another profile is active
	// than the one on which it was computed.
	Act func(ctx context.Context, r *Replica, w *fit.Wish) error
}

// fitting measures this member and tells the others. If the member leads the global log, a fitter decides.
type fitting struct {
	r   *Replica
	how *Fitting

	published          atomic.Pointer[published]
	shown              atomic.Bool // published was read since the last report
	changes, takenBack atomic.Uint64
	acting             atomic.Bool // a wish is being carried out

	mu    sync.Mutex
	trips map[protocol.MemberID]*trips
	heard fit.Heard

	// Of the goroutine alone:
	measures measures
	brief    int         // reports in a row that were brief
	fitter   *fit.Fitter // nil: another member leads, or none has led yet
}

func newFitting(r *Replica) *fitting {
	f := &fitting{r: r, how: r.opt.Fitting}
	f.reset()
	return f
}

// reset forgets everything. It is for a member that does not measure.
func (f *fitting) reset() {
	f.measures, f.fitter = measures{}, nil
	f.published.Store(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trips, f.heard = map[protocol.MemberID]*trips{}, fit.Heard{}
}

func (f *fitting) every() time.Duration {
	if f.how.Every > 0 {
		return f.how.Every
	}
	return time.Second
}

// run measures, tells and decides until the member stops.
func (f *fitting) run(ctx context.Context) {
	ticker := time.NewTicker(f.every())
	defer ticker.Stop()
	for measured := false; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		measures := f.r.tuning().measures()
		if measured && !measures {
			f.reset()
		}
		if measured = measures; measures {
			f.tick()
		}
	}
}

func (f *fitting) tick() {
	r := f.r
	report, ok := f.measures.report(r, f.shortest())
	if ok {
		f.hear(report)
		f.tell(&memberReport{report, f.briefly()})
	}
	switch leader, operates := f.look(); {
	case leader != 0 && leader != r.opt.Self:
		f.fitter = nil
	case leader == r.opt.Self && ok:
		f.step(operates || f.acting.Load())
	}
}

// look returns which member leads the global log, 0 if none is known, and whether this one carries out an operation.
func (f *fitting) look() (leader protocol.MemberID, operates bool) {
	f.r.readView(func(v *cluster.MemberView) { leader, operates = v.Lead().Leader, f.r.operations.Open() > 0 })
	return leader, operates
}

// step has the fitter decide, on the member that leads.
func (f *fitting) step(changing bool) {
	r := f.r
	if f.fitter == nil {
		f.fitter = &fit.Fitter{}
		if f.how.Fitter != nil {
			f.fitter = f.how.Fitter()
		}
	}
	v := f.view(changing)
	d := f.fitter.Step(v)
	if d.Event != "" {
		r.log.Info("fitting the log to its load", "event", "fit", "decision", d.Event)
	}
	f.published.Store(&published{by: r.opt.Self, decision: &fit.Published{By: r.opt.Self, At: v.Wall, Mode: v.Mode,
		Version: v.Profile.Version, Decision: d, Reports: v.Reports}})
	if d.Acts && f.acting.CompareAndSwap(false, true) {
		r.spawn(func(ctx context.Context) { f.act(ctx, d.Wish) })
	}
}

// act carries out a wish.
func (f *fitting) act(ctx context.Context, w *fit.Wish) {
	defer f.acting.Store(false)
	ctx, cancel := context.WithTimeout(ctx, 2*f.r.tuning().GiveUp)
	defer cancel()
	if err := f.how.Act(ctx, f.r, w); err != nil {
		f.log(w).Warn("a change that the fitter wished for was not made", "event", "fit-failed", "profile", w.Version,
			"err", err)
		return
	}
	if f.changes.Add(1); w.TakesBack {
		f.takenBack.Add(1)
	}
	f.log(w).Info("the log was fitted to its load", "event", "fitted", "reason", w.Reason)
}

// log returns the member's logger with the attributes of a wish.
func (f *fitting) log(w *fit.Wish) *slog.Logger {
	log := f.r.log.With("to", w.Describe(""))
	if w.Leader != 0 {
		log = log.With("leader", w.Leader)
	}
	return log
}

// done counts what was carried out.
func (f *fitting) done() fit.Done {
	return fit.Done{Changes: f.changes.Load(), TakenBack: f.takenBack.Load()}
}

package replica

import (
	"cmp"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// tuning are the settings that this member uses now. The event loops and other goroutines look at them when they need
// one.
type tuning struct {
	member.Tuning
	profile protocol.Profile // without Earlier
}

// measures reports whether the member measures for the fitter.
func (t *tuning) measures() bool { return t.Fit != protocol.FitOff }

// ticks is the usual interval of the ticks of an event loop, and pauses that of operations.
func (t *tuning) ticks() time.Duration { return max(t.Heartbeat/10, time.Millisecond) }

func (t *tuning) pauses() time.Duration { return max(t.Heartbeat/20, time.Millisecond) }

// bodyTicks is the interval of the ticks of bodies.
func (t *tuning) bodyTicks() time.Duration { return max(t.Heartbeat/4, time.Millisecond) }

// tuned are the settings under a profile. Without one they are those of the options. The error is a
// [*protocol.ProfileError].
func (o *Options) tuned(p *protocol.Profile) (*tuning, error) {
	t := &tuning{profile: protocol.Profile{Version: p.Version, Core: p.Core, Values: p.Values}}
	t.Heartbeat, t.Election, t.Leaders, t.TrimWhole = o.Heartbeat, o.ElectionTimeout, o.Leaders, o.TrimWhole
	program, err := o.Program(p)
	if err != nil {
		return nil, err
	}
	if p.Version > 0 {
		t.Tuning = t.Under(program.Profile.Values)
	}
	if p.Version == 0 || o.Fitting == nil {
		t.Fit = protocol.FitOff
	}
	t.GiveUp = 5*time.Second + 5*t.Election
	t.Hedge, t.Retry = max(t.Heartbeat/2, time.Millisecond), t.Election
	return t, nil
}

// tuning returns the settings in use. The caller must not change them.
func (r *Replica) tuning() *tuning { return r.inUse.Load() }

// ElectionTimeout is the one of the applied profile.
func (r *Replica) ElectionTimeout() time.Duration { return r.tuning().Election }

// tune takes in the applied profile, and stops the member if this program cannot have it. pmu is held.
func (r *Replica) tune(p *protocol.Profile) {
	before := r.tuning()
	if p.Equal(&before.profile) {
		return
	}
	next, err := r.opt.tuned(p)
	if err != nil {
		r.fail(err)
		return
	}
	if before.profile.Version == 0 {
		r.logOverruled(next)
	} else {
		r.log.Info("the settings are changed", "event", "settings", "profile", p.Version,
			"changed", changes(&before.profile, p))
	}
	r.inUse.Store(next)
	r.operations.tune(next)
	r.peers.Tune(next.Election)
	for _, l := range r.all() {
		poke(l.wake)
	}
	poke(r.bodies.wake)
	r.changed()
}

// changes describes the settings of a profile that differ from those before, for people. A change of the fitter's own
// note is named without its text, and only if nothing else has changed.
func changes(before, p *protocol.Profile) string {
	note := common.FitAvoid.Name
	was, is := protocol.Profile{Values: before.Values.Without(note)}, protocol.Profile{Values: p.Values.Without(note)}
	return cmp.Or(is.Differences(&was), note+" (a note of the fitter)")
}

// logOverruled logs which flags have no effect, because the log has other settings.
func (r *Replica) logOverruled(t *tuning) {
	for _, s := range r.opt.Settings.Overruled(&t.profile) {
		r.log.Warn("a setting of this member is not used, the cluster has another one",
			"setting", s.Name, "here", s.Here, "used", s.Used, "profile", t.profile.Version)
	}
}

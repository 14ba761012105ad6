package braid

import (
	"context"
	"errors"
	"time"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Tuning says which settings [Node.Tune] is to change.
type Tuning struct {
	// Set maps the name of a setting to its new text, as a flag has it; "" is the default. [Node.Tunables] lists the
	// settings. Others stay as they are.
	Set map[string]string
	// Version is the profile that is to be replaced: if another one is active, nothing is changed. 0: the active one.
	Version uint64
}

// Profile are the settings that the members of a cluster share. The log has them: flags and options only give the
// first profile of a new cluster.
type Profile struct {
	// Version is one more with each change of the profile. 0: the log has none, as after an update from an earlier
	// version until all members have the new one. Each member has the settings of its own options then.
	Version uint64
	// Settings has the text of each setting that can be changed, defaults too. "instances" is not part of the profile,
	// and a change of it is no new version: it is how many instances make the log now.
	Settings map[string]string
	Since    time.Time // of the change, by the clock of the member that was asked; zero: not known
	// Earlier are profiles before this one, oldest first. Their Settings have what differs from the profile after.
	Earlier []Profile
}

// Tunable describes a setting of the protocol in a running cluster.
//
//	Name, Value, Default, Help string
//	Waits string // what a change of the setting waits for, or if Fixed, why it cannot be changed
//	Fixed bool
type Tunable = registry.Tunable

// Why [Node.Tune] changed nothing. A [*TuneError] says more.
var (
	// ErrProfileReplaced: another profile than Tuning.Version is active. Nothing happened. Look at the active one
	// before a retry.
	ErrProfileReplaced = errors.New("braid: another profile is active")
	// ErrNotTunable: there is no such setting, it does not allow the value, or it cannot change in a running cluster.
	// Nothing happened. A retry gets the same answer.
	ErrNotTunable = errors.New("braid: the settings cannot be changed so")
)

// TuneError indicates that settings were not changed. Nothing happened, unless it is joined with [ErrMaybeCommitted].
type TuneError struct {
	Name   string // the setting; "": none in particular
	Reason string
	Retry  bool  // the same call may succeed later
	err    error // ErrProfileReplaced, ErrNotTunable, or what else is known of the cause
}

func (e *TuneError) Error() string {
	if e.Name == "" {
		return "braid: tune: " + e.Reason
	}
	return "braid: tune: " + e.Name + ": " + e.Reason
}

// Unwrap returns [ErrProfileReplaced], [ErrNotTunable], or what else is known of the cause.
func (e *TuneError) Unwrap() error { return e.err }

// Tune changes settings of a running cluster, and waits until the change is active on this member. It may be called on
// any member. It returns the active profile. What is as it should be already succeeds, also a repeated call with the
// same Version after an answer was lost.
//
// "instances" is changed after the other settings, as by [Node.Reshape]. If that fails, the others are changed.
//
// A [*TuneError] explains why nothing was changed. Further errors are those of [Node.ChangeMembers]; a retry with the
// same Tuning is safe after each of them.
func (n *Node) Tune(ctx context.Context, t Tuning) (Profile, error) {
	return Profile{}, &TuneError{Reason: "the log has no profile yet", Retry: true}
}

// Tunables lists the settings of the protocol, those too that cannot be changed.
func (n *Node) Tunables() []Tunable {
	s := n.r.Status()
	return n.opt.choice.Tunables(n.opt.values(&s))
}

// values are the settings under the applied profile, with the number of instances.
func (c *config) values(s *replica.Status) setting.Values {
	v := c.choice.Values
	if p := &s.Config.Profile; p.Version > 0 {
		v = p.Values
	}
	return registry.WithInstances(v, len(s.Applied.Points))
}

// profile translates the applied profile.
func (c *config) profile(s *replica.Status) Profile {
	own := &s.Config.Profile
	after := c.values(s)
	p := Profile{Version: own.Version, Settings: c.choice.Texts(after), Since: since(own)}
	for i := range own.Earlier {
		before := registry.WithInstances(own.Earlier[i].Values, len(s.Applied.Points))
		p.Earlier = append(p.Earlier, Profile{Version: own.Earlier[i].Version, Settings: c.choice.Texts(before),
			Since: since(&own.Earlier[i])})
	}
	next := p.Settings
	for i := len(p.Earlier) - 1; i >= 0; i-- {
		all := p.Earlier[i].Settings
		p.Earlier[i].Settings = map[string]string{}
		for _, name := range c.choice.Names() {
			if all[name] != next[name] {
				p.Earlier[i].Settings[name] = all[name]
			}
		}
		next = all
	}
	return p
}

// since is when a profile became active; zero: that is not known.
func since(p *protocol.Profile) (t time.Time) {
	if p.Since > 0 {
		t = time.UnixMilli(p.Since)
	}
	return t
}

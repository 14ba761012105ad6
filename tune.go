package braid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Tuning says which settings [Node.Tune] is to change.
type Tuning struct {
	// Set maps the name of a setting to its new text, as a flag has it; "" is the default. [Node.Tunables] lists the
	// settings. Others stay as they are.
	Set map[string]string `json:"set"`
	// Version is the profile that is to be replaced: if another one is active, nothing is changed. 0: the active one.
	Version uint64 `json:"version"`
}

// Profile are the settings that the members of a cluster share. The log has them: flags and options only give the
// first profile of a new cluster.
type Profile struct {
	// Version is one more with each change of the profile. 0: the log has none, as after an update from an earlier
	// version until all members have the new one. Each member has the settings of its own options then.
	Version uint64 `json:"version"`
	// Protocol is the protocol's name, as [Status] has it. In Earlier it is "", unless the log was sealed after the
	// profile ([Node.Switch]).
	Protocol string `json:"protocol,omitempty"`
	// Settings has the text of each setting that can be changed, defaults too. "instances" is not part of the profile,
	// and a change of it is no new version: it is how many instances make the log now.
	Settings map[string]string `json:"settings"`
	// Since is the time of the change, by the clock of the member that was asked; zero: not known.
	Since time.Time `json:"since,omitzero"`
	// Earlier are profiles before this one, oldest first. Their Settings have what differs from the profile after.
	Earlier []Profile `json:"earlier,omitempty"`
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

func (e *TuneError) Error() string { return changeText("tune", e.Name, e.Reason) }

// changeText is the text of an error of a change that names a setting; "": it names none.
func changeText(change, name, reason string) string {
	if name != "" {
		reason = name + ": " + reason
	}
	return "braid: " + change + ": " + reason
}

// Unwrap returns [ErrProfileReplaced], [ErrNotTunable], or what else is known of the cause.
func (e *TuneError) Unwrap() error { return e.err }

// Tune changes settings of a running cluster, and waits until the change is active on this member. It may be called on
// any member. It returns the active profile. What is as it should be already succeeds, also a repeated call with the
// same Version after an answer was lost. Without settings it only checks Version, and returns the profile.
//
// "instances" is changed after the other settings, as by [Node.Reshape]. If that fails, the others are changed.
//
// It waits as long as ctx lasts. A [*TuneError] explains why nothing was changed. Further errors are those of
// [Node.ChangeMembers], those of [Node.Reshape] if "instances" is changed, and [ErrReadTimeout] if ctx ended before
// this member knew what is active. A retry with the same Tuning is safe after each of them.
func (n *Node) Tune(ctx context.Context, t Tuning) (Profile, error) {
	if n.opt.choice.Core.Judged.Fixed && len(t.Set) > 0 {
		return Profile{}, &TuneError{Reason: "protocol " + n.opt.choice.Name + " keeps the settings that it began with",
			err: ErrNotTunable}
	}
	for {
		instances, err := n.tuneProfile(ctx, &t)
		if err == nil && instances > 0 {
			err = n.r.Reshape(ctx, instances)
		}
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			if refused.Reason == protocol.ReasonProfile && (t.Version == 0 || errors.Is(err, ErrMaybeCommitted)) {
				continue // another profile has replaced the one on which it was computed, or this call has
			}
			err = t.refused(err, refused, instances > 0)
		}
		if err != nil {
			return Profile{}, err
		}
		s := n.r.Status()
		return n.describe(&s).profile.clone(), nil
	}
}

// tuneProfile makes the changes of the profile. It returns the number of instances that there are to be; 0: no other
// one.
func (n *Node) tuneProfile(ctx context.Context, t *Tuning) (instances int, err error) {
	if err := n.r.AwaitRead(ctx); err != nil {
		return 0, err
	}
	s := n.r.Status()
	active := &s.Config.Profile
	base, known := active.Find(cmp.Or(t.Version, active.Version))
	switch {
	case active.Version == 0 && len(t.Set) > 0:
		return 0, &TuneError{Retry: true,
			Reason: "the log has no profile yet, as after an update until all members have the new version"}
	case !known, len(t.Set) == 0 && base.Version != active.Version:
		return 0, t.replaced(active)
	case len(t.Set) == 0:
		return 0, nil
	}
	does, err := n.opt.choice.Steps(&base, len(s.Applied.Points), &registry.Switching{Tune: t.Set}, time.Now().UnixMilli())
	if wrong := (*SettingError)(nil); errors.As(err, &wrong) {
		why := strings.TrimPrefix(wrong.Text+": "+wrong.Detail, ": ")
		return 0, &TuneError{Name: wrong.Name, Reason: why, err: ErrNotTunable}
	}
	switch next := does.Tune; {
	case err != nil:
		return 0, err
	case base.Version == active.Version && next == nil:
		return does.Instances, nil
	case base.Version == active.Version:
		return does.Instances, n.r.Tune(ctx, *next)
	case next == nil:
	case active.Equal(next), active.Had(next) && does.Instances == 0: // its answer was lost
		return does.Instances, nil
	}
	return 0, t.replaced(active)
}

// replaced is the error of a tuning that was computed on another profile than the active one.
func (t *Tuning) replaced(active *protocol.Profile) error {
	return &TuneError{Reason: fmt.Sprintf("profile %d is active, and not %d", active.Version, t.Version),
		err: ErrProfileReplaced}
}

// refused is the error of a change that the leader refused.
func (t *Tuning) refused(err error, why *RefusedError, reshaped bool) error {
	e := &TuneError{Reason: why.Reason.String(), Retry: why.Retryable(), err: withCause(err, why.Reason)}
	if reshaped {
		e.Name = common.Instances.Name
	} else if len(t.Set) == 1 {
		for e.Name = range t.Set {
		}
	}
	return e
}

// withCause joins the refusal of a change with the error that programs look for.
func withCause(err error, why protocol.Reason) error {
	switch why {
	case protocol.ReasonProfile:
		return errors.Join(ErrProfileReplaced, err)
	case protocol.ReasonSettings, protocol.ReasonInvalidChange, protocol.ReasonFixed, protocol.ReasonInstances,
		protocol.ReasonQuorums:
		return errors.Join(ErrNotTunable, err)
	}
	return err
}

// Tunables lists the settings of the protocol, those too that cannot be changed.
func (n *Node) Tunables() []Tunable {
	s := n.r.Status()
	choice := n.opt.choice.Of(&s.Config.Profile)
	return choice.Tunables(n.opt.values(&s))
}

// values are the settings under the applied profile, with the number of instances.
func (c *config) values(s *replica.Status) setting.Values {
	return registry.WithInstances(c.under(s).Values, len(s.Applied.Points))
}

// under is the protocol with the settings of the applied profile.
func (c *config) under(s *replica.Status) registry.Choice {
	return c.choice.At(&s.Config.Profile, len(s.Applied.Points))
}

// profile translates the applied profile.
func (c *config) profile(s *replica.Status) Profile {
	own, instances := &s.Config.Profile, len(s.Applied.Points)
	of, now := c.choice.Of(own), c.under(s)
	p := Profile{Version: own.Version, Protocol: now.Name, Settings: of.Texts(c.values(s)), Since: since(own)}
	p.Earlier = make([]Profile, len(own.Earlier))
	next, after := p.Settings, of.Core
	for i, e := range slices.Backward(own.Earlier) {
		of := c.choice.Of(&e)
		all := of.Texts(registry.WithInstances(e.Values, instances))
		before := Profile{Version: e.Version, Settings: map[string]string{}, Since: since(&e)}
		if of.Core != after {
			before.Protocol = of.Under(e.Values, of.Instances()).Name
		}
		for _, name := range of.Names() {
			if name != common.Instances.Name && all[name] != next[name] { // their number then is not known
				before.Settings[name] = all[name]
			}
		}
		p.Earlier[i], next, after = before, all, of.Core
	}
	return p
}

// clone returns a profile that shares nothing with p.
func (p *Profile) clone() Profile {
	c := *p
	c.Settings, c.Earlier = maps.Clone(p.Settings), slices.Clone(p.Earlier)
	for i := range c.Earlier {
		c.Earlier[i].Settings = maps.Clone(c.Earlier[i].Settings)
	}
	return c
}

// since is when a profile became active; zero: that is not known.
func since(p *protocol.Profile) (t time.Time) {
	if p.Since > 0 {
		t = time.UnixMilli(p.Since)
	}
	return t
}

package braid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/quorum"
)

// Switch says to which protocol [Node.Switch] is to change a running cluster.
type Switch struct {
	// Protocol is the name of a protocol that has one order of all commands: raft, craft, niagara, lcr, multi-paxos or
	// iss.
	Protocol string `json:"protocol"`
	// Settings maps the name of a setting of that protocol to its text, as a flag has it; "" is the default. Others
	// keep their values, if the protocol has them, except for those that its name says, such as lanes.
	Settings map[string]string `json:"settings,omitempty"`
	// Version is the profile that is to be replaced: if another one is active, nothing is changed. 0: the active one.
	Version uint64 `json:"version,omitempty"`
}

// SwitchPlan says what [Node.Switch] does, one after the other. It is nothing if Tune is empty and Seal is 0.
type SwitchPlan struct {
	Version uint64 `json:"version"` // the profile that is replaced
	// Tune are settings that are changed first, as by [Node.Tune]: those that are enough, or lanes, which are off where
	// the log is sealed.
	Tune map[string]string `json:"tune,omitempty"`
	// Seal is the version of the profile under which the log continues behind a seal. 0: it is not sealed.
	Seal uint64 `json:"seal,omitempty"`
	// Protocol is the name of the protocol after it, Instances how many instances make its log, and Settings has the
	// text of each of its settings, defaults too.
	Protocol  string            `json:"protocol"`
	Instances int               `json:"instances"`
	Settings  map[string]string `json:"settings"`
}

// SwitchError indicates that the protocol was not changed, unless it is joined with [ErrMaybeCommitted]. Settings that
// are changed before a seal, as [SwitchPlan].Tune has them, may have been changed.
type SwitchError struct {
	Name   string // the setting; "protocol": the protocol; "": none in particular
	Reason string
	Retry  bool  // the same call may succeed later
	err    error // ErrProfileReplaced, ErrNotTunable, or what else is known of the cause
}

func (e *SwitchError) Error() string { return changeText("switch", e.Name, e.Reason) }

// Unwrap returns [ErrProfileReplaced], [ErrNotTunable], or what else is known of the cause.
func (e *SwitchError) Unwrap() error { return e.err }

// Switch changes the protocol of a running cluster, and waits until the change is active on this member. It may be
// called on any member. It returns the active profile. What is as it should be already succeeds, also a repeated call
// with the same Version after an answer was lost.
//
// Raft, craft, niagara and lcr become one another by a change of settings, as by [Node.Tune]. Otherwise the log is
// sealed: everything before the seal is applied, and then the log continues in new instances, with the same members,
// sessions and positions. Proposals wait meanwhile for an election; none is lost, and none takes effect twice.
// [Node.PlanSwitch] says which of both it is. A change of quorums or of epochs is such a switch, too, also to the same
// protocol.
//
// It waits as long as ctx lasts, but once the change is made, not much longer than [Node.Propose] does until it is
// active on this member: then the error is [ErrMaybeCommitted]. A [*SwitchError] explains why the protocol was not
// changed. Further errors are those of [Node.Tune]; a retry with the same Switch is safe after each of them.
func (n *Node) Switch(ctx context.Context, s Switch) (Profile, error) {
	for {
		err := n.switchFrom(ctx, &s)
		if err != nil {
			err = s.refused(err)
		}
		switch {
		case errors.Is(err, ErrProfileReplaced) && s.Version == 0:
			continue // it was planned on a profile that another one has replaced meanwhile
		case err != nil:
			return Profile{}, err
		}
		now := n.r.Status()
		return n.describe(&now).profile.clone(), nil
	}
}

// PlanSwitch returns what Switch would do now, and changes nothing. The errors are those of Switch.
func (n *Node) PlanSwitch(ctx context.Context, s Switch) (SwitchPlan, error) {
	if err := n.r.AwaitRead(ctx); err != nil {
		return SwitchPlan{}, err
	}
	now := n.r.Status()
	base, does, err := n.planSwitch(&now, &s)
	if err == nil && base.Version != now.Config.Profile.Version {
		err = s.replaced(&now.Config.Profile)
	}
	if err != nil {
		return SwitchPlan{}, err
	}
	p := SwitchPlan{Version: base.Version, Tune: does.Tune, Protocol: does.To.Name, Instances: does.Instances,
		Settings: map[string]string{}}
	for _, row := range does.To.Tunables(registry.WithInstances(does.To.Values, does.Instances)) {
		if row.Name != common.Order.Name {
			p.Settings[row.Name] = row.Value
		}
	}
	if does.Seal != nil {
		p.Seal = does.Seal.Profile.Version
	}
	name := common.Instances.Name
	if len(p.Tune) > 1 && p.Tune[name] == strconv.Itoa(len(now.Applied.Points)) {
		delete(p.Tune, name) // as there are
	}
	return p, nil
}

// switchFrom makes the change from the profile that s names, or from what an earlier call has made of it.
func (n *Node) switchFrom(ctx context.Context, s *Switch) error {
	if err := n.r.AwaitRead(ctx); err != nil {
		return err
	}
	now := n.r.Status()
	active := &now.Config.Profile
	base, does, err := n.planSwitch(&now, s)
	switch {
	case err != nil:
		return err
	case does.Sealed(active, len(now.Applied.Points)):
		return nil // its answer was lost
	case len(does.Tune) == 0 && base.Version != active.Version:
		return s.replaced(active)
	case len(does.Tune) > 0:
		_, err = n.Tune(ctx, Tuning{Set: does.Tune, Version: base.Version})
	}
	if err == nil && does.Seal != nil {
		does.Seal.Profile.Since = time.Now().UnixMilli()
		err = n.r.Switch(ctx, *does.Seal)
	}
	return err
}

// planSwitch returns what a switch does, and the profile that it replaces. The error is a [*SwitchError].
func (n *Node) planSwitch(now *replica.Status, s *Switch) (base protocol.Profile, does registry.Switching, err error) {
	active := &now.Config.Profile
	base, known := active.Find(cmp.Or(s.Version, active.Version))
	if !known {
		return base, does, s.replaced(active)
	}
	base.Earlier = nil
	for _, e := range active.Earlier {
		if e.Version < base.Version {
			base.Earlier = append(base.Earlier, e)
		}
	}
	does, err = n.opt.choice.Switch(&base, len(now.Applied.Points), s.Protocol, s.Settings)
	if err == nil && does.Nothing() && does.To.Keeps() && base.Version != active.Version {
		does, err = n.opt.choice.Switch(&base, 0, s.Protocol, s.Settings) // how many there were is not known any more
	}
	if wrong := (*SettingError)(nil); errors.As(err, &wrong) {
		why := strings.TrimPrefix(wrong.Text+": "+wrong.Detail, ": ")
		return base, does, &SwitchError{Name: wrong.Name, Reason: why, err: ErrNotTunable}
	}
	if err == nil && does.Seal != nil {
		_, err = registry.QuorumsOf(does.To.Own(), len(now.Config.Voters()), quorum.ZonesOf(&now.Config))
	}
	switch {
	case err != nil:
		name := quorum.Setting.Name
		return base, does, &SwitchError{Name: name, Reason: strings.TrimPrefix(err.Error(), name+" "),
			err: ErrNotTunable}
	case base.Version == 0:
		return base, does, &SwitchError{Retry: true,
			Reason: "the log has no profile yet, as after an update until all members have the new version"}
	}
	return base, does, nil
}

// replaced is the error of a switch from another profile than the active one.
func (s *Switch) replaced(active *protocol.Profile) error {
	return &SwitchError{Reason: fmt.Sprintf("profile %d is active, and not %d", active.Version, s.Version),
		err: ErrProfileReplaced}
}

// refused is the error of a change that was not made.
func (s *Switch) refused(err error) error {
	if tune := (*TuneError)(nil); errors.As(err, &tune) {
		return &SwitchError{Name: tune.Name, Reason: tune.Reason, Retry: tune.Retry, err: tune.err}
	}
	var why *RefusedError
	if !errors.As(err, &why) {
		return err
	}
	return &SwitchError{Reason: why.Reason.String(), Retry: why.Retryable(), err: withCause(err, why.Reason)}
}

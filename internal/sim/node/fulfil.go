package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// The leader carries out a wish of its fitter, as an operator would.

var (
	fitChanges    = count.New("fit_changes", "changes that fitters made", count.Bodiless)
	fitTakenBack  = count.New("fit_taken_back", "changes that fitters took back", count.Bodiless)
	fitRefused    = count.New("fit_refused", "changes of fitters that were not made", count.Bodiless)
	fitOvertaken  = count.New("fit_overtaken", "changes of fitters that another change overtook", count.Bodiless)
	fitHandedOver = count.New("fit_handed_over", "leaderships that fitters handed over", count.Bodiless)
)

// fulfilment is a wish that is carried out, one operation after the other.
type fulfilment struct {
	*fitting
	wish   fit.Wish
	fitted *judge.Fitted
	until  time.Duration
}

// fulfil begins to carry out a wish.
func (f *fitting) fulfil(wish *fit.Wish) {
	m, w := f.m, f.m.Env
	u := &fulfilment{fitting: f, wish: *wish, until: w.Now() + f.patience()}
	f.acts = u
	does, err := u.switching()
	if err != nil {
		w.Violate(m.ID, fmt.Errorf("F5: wishes for %s %v, which cannot be: %w", wish.Protocol, wish.Settings, err))
		return
	}
	u.fitted = &judge.Fitted{Fitter: f.number, By: m.ID, On: m.Applier.Config().Profile.Version, Clock: m.Clock(),
		At: w.Now(), TakesBack: wish.TakesBack, Restores: wish.Restores}
	config, at := m.Applier.Config(), m.Applier.Cursor()
	now := u.set.Choice.At(&config.Profile, len(at.Points))
	// A change to the present shape only removes settings that are left of a change that was interrupted.
	if to := shapeOf(&does.To, does.Instances); !does.Nothing() && to != shapeOf(&now, len(at.Points)) {
		u.fitted.To = to
	}
	w.Tracef("%s   carries out the wish of profile %d: %s %v, led by %s", m.ID, wish.Version, wish.Protocol,
		wish.Settings, wish.Leader)
	w.Violate(m.ID, w.Court.Fits.Begin(u.fitted))
	w.Violate(m.ID, f.judgeMissing(wish))
	u.plan()
}

// shapeOf names a choice with a number of instances, so that equal ones have equal names.
func shapeOf(c *registry.Choice, instances int) string {
	v := c.Values
	shape := fmt.Sprintf("%s of %d, %s %d", c.Name, instances, c.Placement, common.CodeK.In(v))
	if lanes, _ := v.Get("lanes"); lanes == "true" {
		shape += ", lanes"
	}
	if instances > 1 {
		shape += ", " + string(common.Leaders.In(v))
	}
	return shape
}

// patience is for how long a wish is tried.
func (f *fitting) patience() time.Duration { return 10 * f.m.Env.Set.Election }

// switching is what the wish changes of the active profile.
func (u *fulfilment) switching() (registry.Switching, error) {
	config, at := u.m.Applier.Config(), u.m.Applier.Cursor()
	return u.set.Choice.Switch(&config.Profile, len(at.Points), u.wish.Protocol, u.wish.Settings)
}

// plan finds the operations that make the change of the active profile, and has them executed.
func (u *fulfilment) plan() {
	m, w := u.m, u.m.Env
	config, at := m.Applier.Config(), m.Applier.Cursor()
	if v := u.wish.Version; v != 0 && v != config.Profile.Version { // 0 names any, as in braid.Switch
		w.Count(fitOvertaken)
		u.end(errors.New("another profile is active"))
		return
	}
	does, err := u.switching()
	if err != nil {
		u.end(err)
		return
	}
	steps, err := u.set.Choice.Steps(&config.Profile, len(at.Points), &does, w.Now().Milliseconds())
	if err != nil {
		u.end(err)
		return
	}
	u.next(operations(&steps, u.wish.Leader, m.ID))
}

// operations are those of steps, in order. to is the member that is to lead then; 0: any.
func operations(s *registry.Steps, to, leads protocol.MemberID) (ops []cluster.Operation) {
	if s.Tune != nil {
		ops = append(ops, cluster.Operation{Kind: cluster.Tune,
			Changes: []protocol.Change{{Kind: protocol.Tune, Profile: s.Tune}}})
	}
	if s.Instances > 0 {
		ops = append(ops, cluster.Operation{Kind: cluster.Reshape, Instances: s.Instances})
	}
	if s.Seal != nil {
		ops = append(ops, cluster.Operation{Kind: cluster.Switch, Seal: *s.Seal})
	}
	if to != 0 && to != leads {
		ops = append(ops, cluster.Operation{Kind: cluster.TransferLeader, To: to})
	}
	return ops
}

// next has the next operation executed.
func (u *fulfilment) next(ops []cluster.Operation) {
	m, w := u.m, u.m.Env
	if len(ops) == 0 {
		u.end(nil)
		return
	}
	if left := u.until - w.Now(); left > 0 {
		w.Observer.Fits(m, u.fitted, &ops[0], left, func(err error) { u.answered(ops, err) })
		return
	}
	u.end(ErrWithdrawn)
}

// answered takes in the result of the first operation.
func (u *fulfilment) answered(ops []cluster.Operation, err error) {
	var refused *member.RefusedError
	switch {
	case u.m.fitting != u.fitting || u.acts != u:
	case errors.As(err, &refused) && refused.Reason == protocol.ReasonProfile:
		u.m.Later(u.m.Own.Heartbeat, u.plan)
	case err != nil:
		u.end(err)
	default:
		if ops[0].Kind == cluster.TransferLeader {
			u.m.Env.Count(fitHandedOver)
		}
		u.fitted.Made = true
		u.next(ops[1:])
	}
}

// end ends the attempt.
func (u *fulfilment) end(err error) {
	w := u.m.Env
	switch {
	case err != nil:
		w.Count(fitRefused)
	case u.wish.TakesBack:
		w.Count(fitTakenBack)
	default:
		w.Count(fitChanges)
	}
	w.Tracef("%s   has carried out the wish of profile %d: %v", u.m.ID, u.wish.Version, err)
	u.acts = nil
}

// judgeMissing checks that no change is made while a voter is down, for longer than reports of it count, unless the
// change restores service. Reports count for three seconds, and two are for a late one. A process that was paused
// takes in then what came meanwhile.
func (f *fitting) judgeMissing(wish *fit.Wish) error {
	w, config := f.m.Env, f.m.Applier.Config()
	long := 5*f.set.Second + 4*(w.Set.DelayMax+w.Set.Farthest)
	for _, id := range config.Voters() {
		if o := w.Member(id); !wish.Restores && !o.Up && w.Now()-max(o.Down, f.m.Still()) > long {
			return fmt.Errorf("F4: makes a change while %s is missing", id)
		}
	}
	return nil
}

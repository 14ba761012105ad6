package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// operations are what this member carries out for operators, as the leader of the first instance. The
// rules are in package member: Request for the member that is asked, Execution for the leader.
type operations struct {
	mu sync.Mutex
	cluster.Executions
}

// tune takes in other settings.
func (o *operations) tune(t *tuning) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Config.Tune(&t.Tuning)
}

// refused takes in what an instance refuses.
func (o *operations) refused(ref protocol.Rejection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Refused(ref)
}

// ChangeMembers makes membership changes; it makes several changes jointly. It returns when they are in effect on this
// member. If it removes this member, it returns when it is in effect at the leader.
func (r *Replica) ChangeMembers(ctx context.Context, changes []protocol.Change) error {
	return r.operate(ctx, cluster.Operation{Kind: cluster.ChangeMembers, Changes: changes})
}

// TransferLeader hands leadership of the first instance to a voter (0: the most advanced one). It returns when the
// member that led sees the other leader, or at once if this member follows that one already.
func (r *Replica) TransferLeader(ctx context.Context, to protocol.MemberID) error {
	return r.operate(ctx, cluster.Operation{Kind: cluster.TransferLeader, To: to})
}

// Reshape changes how many instances the log is merged from. It returns when that number of instances is active on this
// member.
func (r *Replica) Reshape(ctx context.Context, instances int) error {
	return r.operate(ctx, cluster.Operation{Kind: cluster.Reshape, Instances: instances})
}

// Tune replaces the profile whose version is one less. It returns when that has taken effect on this member.
func (r *Replica) Tune(ctx context.Context, p protocol.Profile) error {
	return r.operate(ctx, cluster.Operation{Kind: cluster.Tune,
		Changes: []protocol.Change{{Kind: protocol.Tune, Profile: &p}}})
}

// Switch seals the log. What follows begins with the profile of the seal; the leader fills in the membership. Switch
// returns when this member has applied everything before the seal.
func (r *Replica) Switch(ctx context.Context, s protocol.Seal) error {
	return r.operate(ctx, cluster.Operation{Kind: cluster.Switch, Seal: s})
}

// readView shows a rule of package member what the member knows of itself.
func (r *Replica) readView(rule func(*cluster.MemberView)) {
	v := cluster.MemberView{Now: r.now(), Applied: r.apply.known, Drained: r.drained()}
	for _, l := range r.all() {
		v.Instances = append(v.Instances, l.status.Load())
	}
	r.operations.mu.Lock()
	defer r.operations.mu.Unlock()
	r.apply.amu.Lock()
	defer r.apply.amu.Unlock()
	rule(&v)
}

// operate has an operation carried out by the leader, and waits until it shows here.
func (r *Replica) operate(ctx context.Context, op cluster.Operation) (err error) {
	if ctx.Err() != nil {
		return notSent(ctx)
	}
	if r.ctx.Err() != nil {
		return r.stopped()
	}
	if err := r.fromApply(); err != nil {
		return err
	}
	var q *cluster.Request
	r.readView(func(v *cluster.MemberView) { q = cluster.NewRequest(r.operations.Config, op, v) })
	defer r.readView(func(v *cluster.MemberView) { q.End(v) })
	pause := r.pauses()
	defer pause.Stop()
	for {
		var leader protocol.MemberID
		var done bool
		if r.readView(func(v *cluster.MemberView) { leader, done, err = q.Next(v) }); done {
			return err
		}
		if leader != 0 {
			lost, answer := r.executeAt(ctx, leader, q)
			if answer != nil && r.ctx.Err() != nil {
				lost, answer = false, errors.Join(r.stopped(), answer)
			}
			r.readView(func(v *cluster.MemberView) {
				if lost {
					q.Lost(v, answer)
				} else {
					q.Answered(v, answer)
				}
			})
			continue
		}
		if err = r.pause(ctx, pause); err != nil {
			return q.Unanswered(err)
		}
	}
}

// executeAt has the leader carry an operation out, which may be this member. lost: no answer came, though ctx lasts.
func (r *Replica) executeAt(ctx context.Context, leader protocol.MemberID, q *cluster.Request) (lost bool, err error) {
	if leader == r.opt.Self {
		return false, r.execute(ctx, q.Op)
	}
	request, err := q.Op.Encode()
	if err != nil {
		return false, err
	}
	asked, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.desert(asked, cancel, q)
	err = r.ask(asked, leader, q.Op.Kind.String(), request)
	link := (*transport.LinkError)(nil)
	return err != nil && ctx.Err() == nil && (asked.Err() != nil || errors.As(err, &link)), err
}

// desert ends a question to a leader that is one no more.
func (r *Replica) desert(asked context.Context, end context.CancelFunc, q *cluster.Request) {
	pause := r.pauses()
	defer pause.Stop()
	for deserted := false; r.pause(asked, pause) == nil; {
		if r.readView(func(v *cluster.MemberView) { deserted = q.Deserted(v) }); deserted {
			end()
			return
		}
	}
}

// execute carries an operation out at this member.
func (r *Replica) execute(ctx context.Context, op cluster.Operation) error {
	if err := r.probe(ctx, &op); err != nil {
		return err
	}
	var e *cluster.Execution
	r.readView(func(*cluster.MemberView) { e = r.operations.Begin(op) })
	defer r.readView(func(v *cluster.MemberView) { r.operations.End(e, v) })
	pause := r.pauses()
	defer pause.Stop()
	for {
		var step cluster.ExecutionStep
		up, shown := r.linked()
		r.readView(func(v *cluster.MemberView) {
			v.Up, v.Version = up, shown.Version
			step = e.Next(v)
		})
		r.input(step.Tell)
		if step.Confirm {
			err := r.confirm(ctx)
			r.readView(func(*cluster.MemberView) { e.Confirmed(err) })
			continue
		}
		if step.Stay != 0 {
			if err := r.ask(ctx, step.Stay, "stay", []byte{askStay}); err != nil {
				r.log.Info("a leader was not told to stay", "member", step.Stay, "err", err)
			}
		}
		if step.Done {
			return step.Err
		}
		if err := r.pause(ctx, pause); err != nil {
			return op.Unanswered(err)
		}
	}
}

func (r *Replica) input(inputs []member.InstanceInput) {
	for _, in := range inputs {
		if l := r.find(in.Instance); l != nil {
			l.input(in.Input, 0)
		}
	}
}

// HandOver hands over to other members all instances that this member leads, at the same time, so that no one notices
// its stop. Meanwhile the member continues serving. HandOver returns when this member leads nothing that another member
// could lead, when ctx ends, or when the member stops. If the state machine calls it, it does nothing.
func (r *Replica) HandOver(ctx context.Context) {
	if r.fromApply() != nil {
		return
	}
	pause := r.pauses()
	defer pause.Stop()
	var leaving instance.StopHandover
	for done := ctx.Err() != nil; !done; done = done || r.pause(ctx, pause) != nil {
		up, _ := r.linked()
		done = r.giveUp(&leaving, up)
	}
}

// giveUp begins to hand over all that this member leads to members for which up is true. left: none of them could lead
// any of it, or only drained ones while this member is drained too.
func (r *Replica) giveUp(leaving *instance.StopHandover, up func(protocol.MemberID) bool) (left bool) {
	var gives []member.InstanceInput
	r.readView(func(v *cluster.MemberView) {
		leaving.Config = r.operations.Config // operators may have changed it since the last time
		gives, left = leaving.Next(v.Now, v.Instances, up, v.Drained)
	})
	for _, g := range gives {
		r.log.Info("leadership is handed over", "instance", g.Instance)
	}
	r.input(gives)
	return left
}

// linked returns a function that says whether the link to a member is up now, and what links show of versions.
func (r *Replica) linked() (up func(protocol.MemberID) bool, all cluster.Shown) {
	shown, formats := map[protocol.MemberID]cluster.Version{}, map[protocol.MemberID]int{}
	for _, p := range r.links.Stats().Peers {
		if p.Connected {
			formats[protocol.MemberID(p.ID)] = p.Format
		}
		switch {
		case p.Connected && p.Seals:
			shown[protocol.MemberID(p.ID)] = cluster.VersionSwitches
		case p.Connected && p.Tunes:
			shown[protocol.MemberID(p.ID)] = cluster.VersionTunes
		case p.Connected:
			shown[protocol.MemberID(p.ID)] = cluster.VersionEarlier
		}
	}
	all.Version = func(id protocol.MemberID) cluster.Version { return shown[id] }
	all.Format = func(id protocol.MemberID) int { return formats[id] }
	return func(id protocol.MemberID) bool { return shown[id] != cluster.VersionUnknown }, all
}

// pauses is for pause.
func (r *Replica) pauses() *time.Ticker {
	return time.NewTicker(r.tuning().pauses())
}

// pause waits until an operation is to be looked at again.
func (r *Replica) pause(ctx context.Context, pauses *time.Ticker) error {
	select {
	case <-pauses.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-r.stop:
		return r.stopped()
	}
}

package replica

import (
	"context"
	"slices"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// A running cluster can weave its log from more or fewer instances. The first instance's log gets an
// EntryReshape. Where that takes effect in the global log, every member begins the new instances or
// retires the last ones. A retired instance stays for a while, so that members that are a little
// behind get the rest of its log. After that they need a snapshot.

// Reshape changes how many instances the log is woven from. It returns when that number of instances
// is in force on this member.
func (r *Replica) Reshape(ctx context.Context, instances int) error {
	err := r.atLeader(ctx, "reshape", askReshape, instances, func(ctx context.Context) error { return r.reshapeHere(ctx, instances) })
	if err != nil {
		return err
	}
	return r.poll(ctx, "reshape", r.opt.GiveUp(), nil, func() bool { return len(r.all()) == instances })
}

// reshapeHere proposes to reshape at this member, which leads the first instance, and waits until it
// has taken effect. It may propose several times: the entry has the number, so a repetition is harmless.
func (r *Replica) reshapeHere(ctx context.Context, instances int) error {
	first := r.first()
	refuse := func(reason protocol.Reason) error {
		return &member.RefusedError{What: "reshape", Reason: reason, Leader: first.status.Load().Leader}
	}
	cursor, configs := r.apply.at()
	switch {
	case !cursor.Woven() || instances < 1 || instances > order.MaxInstances:
		return refuse(protocol.ReasonInvalidChange)
	case len(cursor.Points) == instances:
		return nil
	case cursor.Reshape != 0, !member.Settled(&first.status.Load().Config, configs):
		return refuse(protocol.ReasonChangePending)
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.GiveUp())
	defer cancel()
	for {
		if first.status.Load().Role != protocol.Leader {
			return refuse(protocol.ReasonNotLeader)
		}
		first.input(protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(instances)}}, 0)
		err := r.poll(ctx, "reshape", r.opt.ElectionTimeout, nil, func() bool {
			cursor, _ := r.apply.at()
			return len(cursor.Points) == instances
		})
		if _, stalled := err.(*member.StalledError); !stalled {
			return err
		}
	}
}

// findPending reads what the log has of instances that are newer than the newest snapshot.
func (r *Replica) findPending(meta *member.Meta) (logs []member.InstanceLog, err error) {
	if !meta.Cursor.Woven() {
		return nil, nil
	}
	for _, id := range r.wal.Instances() {
		id := protocol.InstanceID(id)
		if id < meta.Cursor.Fresh {
			continue
		}
		if r.pending[id], err = member.RecoverPending(r.wal, id); err != nil {
			return nil, err
		}
		logs = append(logs, member.InstanceLog{Instance: id, Recovered: &r.pending[id].Recovered})
	}
	return logs, nil
}

// reshaped begins and retires instances, as the global log says at this place. begun says that the
// beginnings of new instances are on their way to the log. reshaped runs in the apply loop.
func (r *Replica) reshaped(a *member.Applier) (begun bool, err error) {
	cursor := a.Cursor()
	shape := cursor.Instances()
	if slices.Equal(shape, r.loops.Load().ids) {
		return false, nil
	}
	meta := a.Meta()
	var all, born, retired []*eventLoop
	var records []wal.Record
	for _, id := range shape {
		l := r.find(id)
		if l == nil {
			var beginning []wal.Record
			if l, beginning, err = r.beginInstance(meta.Base(id), id); err != nil {
				return false, err
			}
			records = append(records, beginning...)
			born = append(born, l)
		}
		all = append(all, l)
	}
	for _, l := range r.all() {
		if !slices.Contains(shape, l.id) {
			retired = append(retired, l)
		}
	}
	if len(records) > 0 {
		r.writer.Submit(records, r.begun)
	}
	for _, l := range retired {
		r.keepRetired(l)
	}
	r.loops.Store(newLoops(all))
	for _, l := range born {
		r.done.Add(1)
		go l.run()
	}
	r.bodies.Kept(func(t *member.Kept) { t.Reshaped(shape) })
	for _, l := range retired {
		ended := a.Ended(l.id)
		l.do(func() { l.hosted.Retire(ended) })
	}
	r.log.Info("the log is woven from other instances", "instances", shape, "position", meta.Cursor.Position)
	r.relink(r.now())
	r.changed()
	return len(records) > 0, nil
}

// begun is called by the log's goroutine when the beginnings of new instances are durable.
func (r *Replica) begun(err error) {
	if err != nil {
		r.fail(err)
		return
	}
	r.apply.push(member.ApplyItem{Begun: true})
}

// beginInstance makes an instance that begins at a base. The log must have records before the
// instance's own.
func (r *Replica) beginInstance(base protocol.Base, id protocol.InstanceID) (l *eventLoop, records []wal.Record, err error) {
	u := r.pending[id]
	if u == nil {
		u = member.NewUnborn(id)
	}
	delete(r.pending, id)
	rec, records, err := u.Begin(base)
	if err != nil {
		return nil, nil, err
	}
	if l, err = r.newLoop(member.InstanceLog{Instance: id, Recovered: &rec}, r.session); err != nil {
		return nil, nil, err
	}
	r.bodies.Kept(func(t *member.Kept) { t.Begin(id, base.Index) })
	return l, records, nil
}

// keepRetired keeps a retired instance for members that are behind.
func (r *Replica) keepRetired(l *eventLoop) {
	r.lmu.Lock()
	r.retired = append(r.retired, l)
	r.lmu.Unlock()
	r.router.forget(l.id)
}

// hosted returns the loop of an instance that is in force, or is retired and stays for a while.
func (r *Replica) hosted(id protocol.InstanceID) *eventLoop {
	if l := r.find(id); l != nil {
		return l
	}
	r.lmu.Lock()
	defer r.lmu.Unlock()
	for _, l := range r.retired {
		if l.id == id {
			return l
		}
	}
	return nil
}

// askAgain has read points asked for again, because other instances are in force now.
func (r *Replica) askAgain(groups []*member.ReadGroup) {
	first := r.first()
	for _, g := range groups {
		first.do(func() { first.hosted.BeginRead(g) })
	}
}

// forget drops the loop of a retired instance that has stayed long enough.
func (r *Replica) forget(l *eventLoop) {
	r.lmu.Lock()
	defer r.lmu.Unlock()
	r.retired = slices.DeleteFunc(r.retired, func(o *eventLoop) bool { return o == l })
}

// dropRetired drops the logs of retired instances. There are some if the member stopped before it
// dropped them, or got a snapshot from after the retirement.
func (r *Replica) dropRetired(meta *member.Meta) error {
	for _, id := range r.wal.Instances() {
		if !meta.Cursor.Retired(protocol.InstanceID(id)) {
			continue
		}
		if err := r.wal.Compact(id, uint64(member.AllIndexes)); err != nil {
			return err
		}
	}
	return nil
}

// missing answers a member that does not have the log of an instance that may be retired. A member
// that joined after the retirement is not in that instance's membership, so this member cannot send
// it the log: it sends a snapshot.
func (r *Replica) missing(from protocol.MemberID, id protocol.InstanceID) {
	if cursor, _ := r.apply.at(); cursor.Retired(id) {
		r.askSnapshot(nil, from, 0)
	}
}

package replica

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// A running cluster's log is woven from more or fewer instances: an EntryReshape stands in the
// first instance's log; where it takes effect in the global log, every member begins the new
// instances, or retires the last ones. Instances that are retired linger for a while, so that
// members that are a little behind get the rest of their logs; later they need a snapshot.

// lingerFor is how many election timeouts an instance that is retired stays for others.
const lingerFor = 10

// Reshape changes how many instances the log is woven from, and returns when it is in force
// on this member.
func (r *Replica) Reshape(ctx context.Context, instances int) error {
	err := r.atLeader(ctx, "reshape", askReshape, instances, func(ctx context.Context) error { return r.reshapeHere(ctx, instances) })
	if err != nil {
		return err
	}
	return r.poll(ctx, "reshape", r.opt.GiveUp(), nil, func() bool { return len(r.all()) == instances })
}

// reshapeHere proposes to reshape at this member, which leads the first instance, and waits
// for it. It is absolute: proposed twice it means the same.
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

// findUnborn reads what the log has of instances that are newer than the newest snapshot.
func (r *Replica) findUnborn(meta *member.Meta) (logs []member.InstanceLog, err error) {
	if !meta.Cursor.Woven() {
		return nil, nil
	}
	for _, id := range r.wal.Instances() {
		id := protocol.InstanceID(id)
		if id < meta.Cursor.Fresh {
			continue
		}
		if r.unborn[id], err = member.RecoverUnborn(r.wal, id); err != nil {
			return nil, err
		}
		logs = append(logs, member.InstanceLog{Instance: id, Recovered: &r.unborn[id].Recovered})
	}
	return logs, nil
}

// reshaped begins and retires instances as the global log says, here and now. begun says that
// the log is about to have the beginnings of some. It runs in the apply loop.
func (r *Replica) reshaped(a *member.Applier) (begun bool, err error) {
	cursor := a.Cursor()
	shape := cursor.Instances()
	if slices.Equal(shape, r.loops.Load().ids) {
		return false, nil
	}
	meta := a.Meta()
	var all, born, retired []*loop
	var records []wal.Record
	for _, id := range shape {
		l := r.find(id)
		if l == nil {
			var beginning []wal.Record
			if l, beginning, err = r.bear(meta.Base(id), id); err != nil {
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
		r.linger(l)
	}
	r.loops.Store(newLoops(all))
	for _, l := range born {
		r.done.Add(1)
		go l.run()
		r.bodies.with(l.kept, func(*member.Retention) {})
	}
	for _, l := range retired {
		ended := a.Ended(l.id)
		l.do(func() { l.retire(ended) })
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

// bear makes an instance that begins at a base; records are to be in the log before its own.
func (r *Replica) bear(base protocol.Base, id protocol.InstanceID) (l *loop, records []wal.Record, err error) {
	u := r.unborn[id]
	if u == nil {
		u = member.NewUnborn(id)
	}
	delete(r.unborn, id)
	rec, records, err := u.Begin(base)
	if err != nil {
		return nil, nil, err
	}
	if l, err = r.newLoop(member.InstanceLog{Instance: id, Recovered: &rec}, r.session); err != nil {
		return nil, nil, err
	}
	r.bodies.with(l.kept, func(t *member.Retention) { t.Compact(base.Index) })
	return l, records, nil
}

// linger keeps an instance that is retired for members that are behind.
func (r *Replica) linger(l *loop) {
	r.lmu.Lock()
	r.lingers = append(r.lingers, l)
	r.lmu.Unlock()
	r.router.mu.Lock()
	r.router.weaver.Forget(l.id)
	r.router.mu.Unlock()
}

// hosted finds the loop of an instance that is in force, or was until lately.
func (r *Replica) hosted(id protocol.InstanceID) *loop {
	if l := r.find(id); l != nil {
		return l
	}
	r.lmu.Lock()
	defer r.lmu.Unlock()
	for _, l := range r.lingers {
		if l.id == id {
			return l
		}
	}
	return nil
}

// retire ends what this member does through the instance. What it proposed there and what
// took no effect another instance takes.
func (l *loop) retire(ended protocol.Index) {
	void, unsure := l.inst.Retire(ended)
	l.r.proposer.again(void)
	for _, b := range unsure {
		b.Fail(member.ErrMaybeCommitted)
	}
	l.mu.Lock()
	groups := l.asked
	l.asked, l.retired = nil, true
	l.mu.Unlock()
	for _, g := range l.groups {
		groups = append(groups, g)
	}
	clear(l.groups)
	l.r.askAgain(groups)
	l.gone = l.clock.Now() + lingerFor*l.r.opt.ElectionTimeout
}

// askAgain has the read points of groups asked for anew, since other instances are in force.
func (r *Replica) askAgain(groups []*member.ReadGroup) {
	first := r.first()
	for _, g := range groups {
		first.do(func() { first.beginRead(g) })
	}
}

// vanish ends a loop whose instance is retired and has lingered long enough: its log and
// what only its log needs are given up. It reports false if the newest snapshot is from before:
// then this member would need the log to start again, so another snapshot comes first.
func (l *loop) vanish() bool {
	r := l.r
	if saved := r.saved.Load(); !saved.Retired(l.id) {
		r.apply.push(member.ApplyItem{Due: true})
		l.gone = r.now() + r.opt.ElectionTimeout
		return false
	}
	r.lmu.Lock()
	r.lingers = slices.DeleteFunc(r.lingers, func(o *loop) bool { return o == l })
	r.lmu.Unlock()
	r.bodies.compacted(l.kept, member.AllIndexes)
	r.writer.Compact(uint32(l.id), uint64(member.AllIndexes))
	l.shut()
	return true
}

// dropRetired gives up the logs of instances that are retired for good: the member stopped
// before it did, or got a snapshot from after that.
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

// missed asks for a snapshot when this member lacks the log of an instance that may be retired.
func (l *loop) missed(now time.Duration, st *protocol.Status) {
	to := l.search.Next(now, l.r.opt.ElectionTimeout, st.Leader != 0, l.r.first().status.Load())
	if to == 0 {
		return
	}
	l.r.spawn(func(ctx context.Context) {
		if err := l.r.askLeader(ctx, to, "snapshot", []byte(fmt.Sprintf("%c%d", askMissing, l.id))); err != nil {
			l.r.log.Info("an instance has no leader", "instance", l.id, "err", err)
		}
	})
}

// missing answers a member that lacks the log of an instance that may be retired. That it
// lingers here does not help one that joined after the retirement: it is none of its members.
func (r *Replica) missing(from protocol.MemberID, id protocol.InstanceID) {
	if cursor, _ := r.apply.at(); cursor.Retired(id) {
		r.askSnapshot(nil, from, 0)
	}
}

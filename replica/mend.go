package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// CheckState says that the state machine may have found its state damaged: then another
// member's takes its place.
func (r *Replica) CheckState() { r.apply.push(applyItem{halt: true}) }

// mend begins to ask others for their state, unless that goes on already.
func (l *applyLoop) mend() {
	if member.Damaged(l.applier.Machine()) == nil || l.r.repairing.Swap(true) {
		return
	}
	l.amu.Lock()
	l.needs = l.applier.Cursor()
	l.amu.Unlock()
	l.r.log.Error("the state is damaged, asking others for theirs", "err", member.Damaged(l.applier.Machine()))
	l.r.spawn(l.r.askForState)
}

func (r *Replica) askForState(ctx context.Context) {
	var m member.Mending
	tick := time.NewTicker(max(r.opt.Heartbeat, time.Millisecond))
	defer tick.Stop()
	for r.repairing.Load() {
		if to := m.Next(r.now(), r.opt.ElectionTimeout, r.first().status.Load()); to != 0 {
			if err := r.askStateOf(ctx, to); err != nil {
				r.log.Info("a member cannot send its state", "member", to, "err", err)
				m.Refused(r.now(), r.opt.ElectionTimeout)
			}
		}
		select {
		case <-tick.C:
		case <-r.apply.useless:
			m.Refused(r.now(), r.opt.ElectionTimeout)
		case <-ctx.Done():
			return
		}
	}
}

func (r *Replica) askStateOf(ctx context.Context, to protocol.MemberID) error {
	r.apply.amu.Lock()
	needs, err := json.Marshal(r.apply.needs)
	r.apply.amu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.GiveUp())
	defer cancel()
	return r.askLeader(ctx, to, "state", append([]byte{askState}, needs...))
}

// sendState answers a member whose state is damaged.
func (r *Replica) sendState(from protocol.MemberID, needs *order.Cursor) error {
	cursor, _ := r.apply.at()
	switch {
	case r.repairing.Load():
		return errors.New("this member's state is damaged itself")
	case cursor.Before(needs):
		return fmt.Errorf("this member's state is at %d, which is behind %d", cursor.Position, needs.Position)
	}
	r.askSnapshot(nil, from, 0)
	return nil
}

// repair puts the newest snapshot that was received in the place of a damaged state. One that
// is of no use is left alone: another one will come.
func (l *applyLoop) repair() error {
	if member.Damaged(l.applier.Machine()) == nil {
		return nil
	}
	began := time.Now()
	f, err := l.r.snaps.At(protocol.Base{}, l.r.first().id)
	if err != nil {
		l.uselessState(err)
		return nil
	}
	defer f.Close()
	meta := f.Header.Meta
	if !l.applier.Fits(&meta) {
		l.uselessState(fmt.Errorf("it is at %d, the log is further", meta.Cursor.Position))
		return nil
	}
	resident := l.applier.Resident()
	after := l.applier.Install(meta, f)
	switch {
	case member.Damaged(l.applier.Machine()) != nil:
		l.applier.Halt()
		l.uselessState(after)
		return nil
	case after != nil && !l.applier.Stuck():
		return after
	}
	if err := l.r.reshaped(l.applier); err != nil {
		return err
	}
	if err := l.r.bodies.mended(l.applier); err != nil {
		return err
	}
	l.logged, l.entries = 0, 0
	l.mu.Lock()
	l.bytes -= resident
	l.mu.Unlock()
	l.r.repairing.Store(false)
	l.r.log.Info("the damaged state was replaced", "position", meta.Cursor.Position, "took", time.Since(began))
	if after != nil {
		return after
	}
	l.publishConfig()
	l.due = true // the log alone does not lead to the new state
	return nil
}

func (l *applyLoop) uselessState(err error) {
	l.r.log.Warn("a snapshot cannot replace the damaged state", "err", err)
	poke(l.useless)
}

// mended is installed for a state that was damaged: the logs are where they were.
func (b *bodies) mended(a *member.Applier) error {
	refs, _, err := member.LiveBodies(a.Machine())
	if err != nil {
		return err
	}
	cursor := a.Cursor()
	for _, ref := range refs {
		b.host(ref.Instance)
	}
	b.kmu.Lock()
	kept := b.kept
	b.kmu.Unlock()
	for _, k := range kept {
		b.with(k, func(t *member.Retention) {
			if b.unsure {
				t.Restart(0, refs)
			}
			t.Renew(0, cursor.Point(k.instance).Index, refs)
		})
	}
	b.unsure = false
	b.sweep()
	return nil
}

package replica

import (
	"context"
	"encoding/json"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// CheckState says that the state machine may have found its state damaged. If it has, another
// member's state replaces it.
func (r *Replica) CheckState() { r.apply.push(member.ApplyItem{Halt: true}) }

func (r *Replica) askForState(ctx context.Context) {
	var m member.StateRepair
	tick := time.NewTicker(max(r.opt.Heartbeat, time.Millisecond))
	defer tick.Stop()
	for r.mending() {
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

func (r *Replica) mending() bool {
	_, yes := r.apply.repairing()
	return yes
}

func (r *Replica) askStateOf(ctx context.Context, to protocol.MemberID) error {
	at, _ := r.apply.repairing()
	needs, err := json.Marshal(at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.GiveUp())
	defer cancel()
	return r.ask(ctx, to, "state", append([]byte{askState}, needs...))
}

// sendState sends this member's state to a member whose state is damaged.
func (r *Replica) sendState(from protocol.MemberID, needs *order.Cursor) error {
	if err := r.apply.stateFor(needs); err != nil {
		return err
	}
	r.askSnapshot(nil, from, 0)
	return nil
}

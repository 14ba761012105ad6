package replica

import (
	"context"
	"sync"

	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/protocol"
)

// draining has the drains of this member and of others. Safe for concurrent use.
type draining struct {
	mu     sync.Mutex
	end    context.CancelFunc // ends this member's own; nil: it may lead
	others instance.Drained
}

// Drain makes this member lead nothing until it is called with false, or the member stops: the member hands over all
// that it leads, each time that it leads something. It returns at once.
func (r *Replica) Drain(on bool) {
	d := &r.draining
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case on && d.end == nil:
		ctx, end := context.WithCancel(r.ctx)
		if !r.spawnOutside(func(context.Context) { r.drain(ctx) }) {
			end()
			return
		}
		d.end = end
		r.log.Info("this member is drained, and leads nothing until that is undone or it restarts", "event", "drained")
	case !on && d.end != nil:
		r.log.Info("this member is not drained any more, and may lead again", "event", "undrained")
		d.end()
		d.end = nil
	}
}

// Drains reports whether this member is to lead nothing.
func (r *Replica) Drains() bool {
	r.draining.mu.Lock()
	defer r.draining.mu.Unlock()
	return r.draining.end != nil
}

// drained returns the other members that are to lead nothing.
func (r *Replica) drained() []protocol.MemberID {
	r.draining.mu.Lock()
	defer r.draining.mu.Unlock()
	return r.draining.others.Now(r.now())
}

// drain hands over all that this member leads, and announces to others that they must not hand anything to it.
func (r *Replica) drain(ctx context.Context) {
	pause := r.pauses()
	defer pause.Stop()
	leaving := instance.StopHandover{Drains: true}
	for notice := (instance.DrainNotice{}); ctx.Err() == nil; _ = r.pause(ctx, pause) {
		if notice.Due(r.now(), r.tuning().Election) {
			r.announceDrain(true)
		}
		up, _ := r.linked()
		r.giveUp(&leaving, up)
	}
	r.announceDrain(false)
}

// announceDrain announces to the members with a link whether this one is drained.
func (r *Replica) announceDrain(drained bool) {
	question := []byte{askDrained, 0}
	if drained {
		question[1] = 1
	}
	up, _ := r.linked()
	_, configs := r.apply.at()
	for i := range configs[0].Members {
		to := configs[0].Members[i].ID
		if to == r.opt.Self || !up(to) {
			continue
		}
		r.spawn(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, r.tuning().Election)
			defer cancel()
			if err := r.ask(ctx, to, "drained", question); err != nil {
				r.log.Debug("a member does not know that this one is drained", "member", to, "err", err)
			}
		})
	}
}

// noteDrained records the announcement of another member whether it is drained.
func (r *Replica) noteDrained(from protocol.MemberID, body []byte) {
	r.draining.mu.Lock()
	defer r.draining.mu.Unlock()
	r.draining.others.Note(r.now(), r.tuning().Election, from, len(body) == 1 && body[0] == 1)
}

package replica

import (
	"context"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// HandOver hands over to other members all instances that this member leads, at the same time, so that
// nobody notices its stop. Meanwhile the member goes on serving. HandOver returns when this member
// leads nothing that another member could lead, when ctx ends, or when the member stops.
func (r *Replica) HandOver(ctx context.Context) {
	pause := time.NewTicker(max(r.opt.Heartbeat/20, time.Millisecond))
	defer pause.Stop()
	for leaving := (member.StopHandover{}); ; {
		var instances []*protocol.Status
		for _, l := range r.all() {
			instances = append(instances, l.status.Load())
		}
		gives, left := leaving.Next(r.now(), 2*r.opt.Heartbeat, r.opt.Leaders != protocol.LeadersSpread, instances, r.linked())
		if left {
			return
		}
		for _, g := range gives {
			if l := r.find(g.Instance); l != nil {
				r.log.Info("leadership is handed over before the stop", "instance", g.Instance, "to", g.To)
				l.input(protocol.Transfer{To: g.To}, 0)
			}
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		case <-r.stop:
			return
		}
	}
}

// linked returns a function that reports whether the link to a member is up now.
func (r *Replica) linked() func(protocol.MemberID) bool {
	up := map[protocol.MemberID]bool{}
	for _, p := range r.links.Stats().Peers {
		up[protocol.MemberID(p.ID)] = p.Connected
	}
	return func(id protocol.MemberID) bool { return up[id] }
}

package replica

import (
	"context"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// HandOver gives what this member leads to others, all instances at the same time, so that its
// stop is not noticed. It goes on serving, and returns when it leads nothing that somebody else
// could, or ctx ends.
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

// linked tells whose links are up.
func (r *Replica) linked() func(protocol.MemberID) bool {
	up := map[protocol.MemberID]bool{}
	for _, p := range r.links.Stats().Peers {
		up[protocol.MemberID(p.ID)] = p.Connected
	}
	return func(id protocol.MemberID) bool { return up[id] }
}

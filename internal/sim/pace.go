package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Where nothing fails, nothing waits for a timeout. At the end of some runs, when everybody lives and has all, one
// client writes alone, one command after the other, always at the same member. Each must take effect within some
// round trips, writes to the disk and heartbeats. Shares, segments and epochs follow from load, so a client that
// is alone for long meets what no busy run shows.

// lonePace draws what one client alone does.
var lonePace = draw.New("pace")

// lone is such a client.
type lone struct {
	client.Client
	w     *fault.World
	m     *node.Member
	left  int // commands
	lives int // livesBegun when it began
}

// demandPace lets one client write alone at one of these members, and judges how long each command takes.
func demandPace(w *fault.World, alive []*node.Member) {
	serving := fault.Serving(w, alive)
	d := w.From(lonePace)
	if w.Broken != nil || len(serving) == 0 || anyMissing(w, serving[0].Applier.Configs()) || w.Set.Backlog > 0 || !d.Yes(0.3) {
		return // where hardly anything may wait to be applied, proposals are dropped and repeated
	}
	w.Set.Swift()
	for _, o := range w.Members {
		o.Own.Swift()
	}
	m := serving[d.Below(len(serving))]
	c := &lone{Client: w.Clients.Client(w.Set.Clients+len(w.Members)+1, m.ID), w: w, m: m, left: 40 + d.Below(80)}
	w.Tracef("CALM: one client writes at %s, %d times; each time within %s", m.ID, c.left, paceLimit(w))
	if !rested(w, serving) {
		return
	}
	c.lives = livesBegun(w)
	w.After(0, c.next)
	w.RunUntil(w.Now()+time.Duration(c.left)*paceLimit(w), func() bool { return c.left == 0 })
}

// rested lets what was slow before end: syncs that began on slow disks, and what waits for it. It reports whether frames
// that waited for narrow links have arrived, too: others wait behind them, perhaps for long.
func rested(w *fault.World, members []*node.Member) bool {
	w.RunUntil(sluggish(w, members)+2*w.Set.Election, func() bool { return false })
	return !w.Net.Backed(w.Now() + w.Set.DelayMax)
}

// sluggish is when the last sync of these members ends that began while their disks were slow, or now.
func sluggish(w *fault.World, members []*node.Member) time.Duration {
	until := w.Now()
	for _, m := range members {
		until = max(until, m.Sluggish)
	}
	return until
}

// livesBegun is how often members have started or stopped.
func livesBegun(w *fault.World) (n int) {
	for _, m := range w.Members {
		n += m.Life
	}
	return n
}

// anyMissing reports whether a member of one of these configurations is down.
func anyMissing(w *fault.World, configs []protocol.Config) bool {
	return slices.ContainsFunc(configs, func(c protocol.Config) bool { return fault.LacksMember(w, &c) })
}

// paceLimit is how long a command may take.
func paceLimit(w *fault.World) time.Duration {
	s := &w.Set
	return 4*s.Heartbeat + 2*s.PieceTime()
}

func (c *lone) next() {
	w := c.w
	op := &history.Operation{Operation: check.Operation{Client: c.Number, Kind: check.Append, Key: "k0", Value: fmt.Sprintf("%d,", len(w.History.Ops))}}
	began := w.Now()
	c.Perform(c.m, op, paceLimit(w), func() {
		var refused *member.RefusedError
		switch {
		case w.History.Succeeded(op):
		case errors.As(op.Err, &refused) && refused.Reason == protocol.ReasonRemoved:
			c.left = 0 // by a change that was under way
			return
		case livesBegun(w) != c.lives:
			c.left = 0 // a member has stopped, because it noticed only now what had failed before
			return
		default:
			w.Violate(c.m.ID, fmt.Errorf("nothing fails, and a command of a client that writes alone has not taken effect after %s", w.Now()-began))
			return
		}
		if c.left--; c.left > 0 {
			c.next()
		}
	})
}

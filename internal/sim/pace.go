package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Without failures no command waits for a timeout. At the end of some runs, when all members are up and up to date,
// one client writes alone, one command after the other, always at the same member. Each must take effect within some
// round trips, writes to the disk and heartbeats. Shares, segments and epochs follow from load, so a client that is
// alone for long tests states that no busy run reaches.

// lonePace draws the load of a single client. judgedLone counts the runs that end with it.
var (
	lonePace   = draw.New("pace")
	judgedLone = count.New("judged_lone", "times that one client was to be served without delay")
)

// lone is such a client.
type lone struct {
	client.Client
	w     *fault.World
	m     *node.Member
	left  int // commands
	lives int // livesBegun when it began
}

// demandPace lets one client write alone at one of these members, and judges the latency of each command.
func demandPace(w *fault.World, alive []*node.Member) {
	serving := fault.Serving(w, alive)
	d := w.From(lonePace)
	if w.Broken != nil || len(serving) == 0 || anyMissing(w, serving[0].Applier.Configs()) || w.Set.Backlog > 0 || !d.Yes(0.3) {
		return // with a tiny limit on unapplied entries, proposals are dropped and repeated
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
	w.Count(judgedLone)
	c.lives = livesBegun(w)
	w.After(0, c.next)
	w.RunUntil(w.Now()+time.Duration(c.left)*paceLimit(w), func() bool { return c.left == 0 })
}

// rested waits for the end of earlier slow work: syncs that began on slow disks, events that a pause delayed, and work
// that waits for them. It reports whether frames that waited for narrow links have arrived, too: others wait behind
// them, perhaps for long.
func rested(w *fault.World, members []*node.Member) bool {
	w.RunUntil(sluggish(w, members)+2*w.Set.Election, func() bool { return false })
	return !w.Net.Backed(w.Now() + w.Set.DelayMax)
}

// sluggish returns the end of the last sync of these members that began while their disks were slow, and of the last
// event that a pause delayed, or now.
func sluggish(w *fault.World, members []*node.Member) time.Duration {
	until := w.Now()
	for _, m := range members {
		until = max(until, m.Sluggish, m.Still())
	}
	return until
}

// livesBegun returns the number of starts and stops of members.
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

// paceLimit returns the maximal latency of a command.
func paceLimit(w *fault.World) time.Duration {
	s := &w.Set
	return 4*s.Heartbeat + 2*s.PieceTime()
}

func (c *lone) next() {
	w := c.w
	op := c.Operation(check.Append, "k0")
	began := w.Now()
	c.Perform(c.m, op, paceLimit(w), func() {
		var refused *member.RefusedError
		switch {
		case w.History.Succeeded(op):
		case errors.As(op.Err, &refused) && refused.Reason == protocol.ReasonRemoved:
			c.left = 0 // by a change in progress
			return
		case livesBegun(w) != c.lives:
			c.left = 0 // a member has stopped, because it noticed an earlier failure only now
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

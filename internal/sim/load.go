package sim

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// What clients do together: many at a time write the same keys, and read at one member what they
// have just written at another. A fault shows only to a client who reads during it, at the member
// that it concerns.

// loadSettings is what all clients have in common.
type loadSettings struct {
	// Pinned is the share of clients that stay with their member whatever happens. Leaders is the
	// share that ask any member that believes that it leads. The others ask another member when
	// theirs is down.
	Pinned, Leaders float64
	// Hot is the share of operations on the first key.
	Hot float64
	// Burst is how many operations a client begins at once at most; Bursts is how often it does so.
	Burst  int
	Bursts float64
	// Chase is how often an acknowledged write is read soon afterwards, at one member or at all.
	Chase float64
	// Pipes is the share of clients that propose without waiting.
	Pipes float64
	// Early is the share of writes that ask for an answer before they are applied.
	Early float64
	// Blind is the share of the other writes that are blind.
	Blind float64
	// Withdraw is the share of writes that clients withdraw if they are not answered soon.
	Withdraw float64
	// Astray is the share of writes of which clients do not say the one group of keys that they touch.
	Astray float64
	// Crowd is how often clients come at once where a member leads and another one still believes
	// that it does. They write at the new leader and read at the old one.
	Crowd float64
	// Overwrite is the share of operations that replace the value of a key.
	Overwrite float64
}

// drawLoad makes most runs busy. The others stay quiet.
func (s *Settings) drawLoad(d draw.Chance) {
	l := &s.Load
	l.Overwrite = 0.05
	if d.Yes(0.2) {
		return
	}
	s.Clients = 3 + d.Below(12)
	s.Operations = 200 + d.Below(800)
	l.Overwrite += 0.3 * d.Share()
	// Mostly the load lasts as long as the faults.
	s.Think = time.Duration(2 * d.Share() * float64(s.Chaos) * float64(s.Clients) / float64(s.Operations))
	if s.Reads = d.Share(); d.Yes(0.5) {
		s.Reads = 0.5
	}
	if d.Yes(0.6) {
		s.Patience = s.Election * time.Duration(1+d.Below(3)) / 2
	}
	l.Pinned, l.Leaders = d.Share(), d.Share()
	if d.Yes(0.5) {
		l.Hot = d.Share()
	}
	if d.Yes(0.4) {
		l.Burst, l.Bursts = 2+d.Below(8), 0.3*d.Share()
	}
	if d.Yes(0.7) {
		l.Chase = d.Share()
	}
	l.Crowd = d.Share()
	if s.Bodies.Share > 0 { // reads gather all bodies of a value
		s.Operations /= 2
		l.Overwrite = max(l.Overwrite, 0.2)
	}
	s.Core.MaxUncommittedBytes = max(s.Core.MaxUncommittedBytes, min(s.BatchBytes, s.Clients*(l.Burst+pipeline)*(s.Padding+500)))
}

func (s *Settings) describeLoad() string {
	l := &s.Load
	return fmt.Sprintf("clients: %.0f%% stay, %.0f%% ask leaders; %.0f%% on one key, %.0f%% overwrite; %.0f%% in bursts of ≤ %d; %.0f%% of writes are read at once; %.0f%% propose without waiting; %.0f%% of writes are answered early, %.0f%% of the others are blind\n",
		100*l.Pinned, 100*l.Leaders, 100*l.Hot, 100*l.Overwrite, 100*l.Bursts, l.Burst, 100*l.Chase, 100*l.Pipes, 100*l.Early, 100*l.Blind)
}

// manner is how a client chooses the member that it asks.
type manner int

const (
	roams       manner = iota // another member when its own is down, and sometimes without a reason
	stays                     // its own member, or none
	asksLeaders               // any member that believes that it leads
)

// drawManner draws the manner of the next client.
func drawManner(w *World) manner {
	switch x := w.Rand.Float64(); {
	case x < w.set.Load.Pinned:
		return stays
	case x < w.set.Load.Pinned+w.set.Load.Leaders:
		return asksLeaders
	}
	return roams
}

// chooses is the member that the client asks next; nil: none now.
func (c *client) chooses() *node.Member {
	home := c.w.Member(c.home)
	switch c.manner {
	case stays:
		if home.Up {
			return home
		}
		return nil
	case asksLeaders:
		if led := c.w.upAnd((*node.Member).LeadsAny); len(led) > 0 {
			return led[c.w.Among(len(led))]
		}
	}
	if home.Up && !c.w.Chance(0.05) {
		return home
	}
	up := c.w.upAnd(func(*node.Member) bool { return true })
	if len(up) == 0 {
		return nil
	}
	m := up[c.w.Pick(len(up))]
	c.home = m.ID
	return m
}

// upAnd lists the members that run and for which holds is true.
func (w *World) upAnd(holds func(*node.Member) bool) (list []*node.Member) {
	for _, m := range w.Members {
		if m.Up && holds(m) {
			list = append(list, m)
		}
	}
	return list
}

// chase lets clients soon read what was just written, at one member or at all that run. The answers
// must include the write.
func chase(w *World, key string) {
	if w.Calm {
		return
	}
	for _, m := range w.upAnd((*node.Member).Replaced) {
		if w.Chance(w.set.Load.Crowd) {
			comeTo(w, m, check.Get, key, 0)
		}
	}
	if len(w.History.Ops) >= w.set.Operations || !w.Chance(w.set.Load.Chase) {
		return
	}
	all := w.Chance(0.3)
	one := protocol.MemberID(1 + w.Pick(len(w.Members)))
	for _, m := range w.Members {
		if all || m.ID == one {
			comeTo(w, m, check.Get, key, w.Between(0, w.set.Heartbeat))
		}
	}
}

// comeTo lets a client of its own ask a member for something.
func comeTo(w *World, m *node.Member, kind check.Kind, key string, when time.Duration) {
	w.After(when, func() {
		if m.Up && !w.Calm {
			c := &client{w: w, number: w.set.Clients + int(m.ID), home: m.ID}
			op := &history.Operation{Operation: check.Operation{Client: c.number, Kind: kind, Key: key}}
			if kind == check.Put {
				op.Value = fmt.Sprintf("%d,", len(w.History.Ops))
			}
			c.perform(m, op, w.set.Patience, func() {})
		}
	})
}

// crowd lets a client write at once at a member that has just been elected, while another one
// still believes that it leads. Once that is acknowledged, others read it there: see chase.
func crowd(w *World, m *node.Member) {
	if w.set.Load.Crowd > 0 && len(w.upAnd((*node.Member).Replaced)) > 0 && w.Chance(w.set.Load.Crowd) {
		comeTo(w, m, check.Put, drawKey(w), 0)
	}
}

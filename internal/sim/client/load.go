package client

import (
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Clients that act together: many write the same keys at once, and read at one member what they have just written at
// another. Only a client that reads during a fault, at the affected member, observes it.

// manner is the way in which a client selects a member.
type manner int

const (
	roams       manner = iota // another member if its own is down, and sometimes for no reason
	stays                     // its own member, or none
	asksLeaders               // any member that believes that it leads
)

// drawManner draws the manner of the next client.
func (w *Clients) drawManner() manner {
	switch x := w.Rand.Float64(); {
	case x < w.own.Load.Pinned:
		return stays
	case x < w.own.Load.Pinned+w.own.Load.Leaders:
		return asksLeaders
	}
	return roams
}

// chooses returns the member that the client asks next; nil: none now.
func (c *Client) chooses() *node.Member {
	home := c.w.Member(c.Home)
	switch c.manner {
	case stays:
		if home.Up {
			return home
		}
		return nil
	case asksLeaders:
		if led := c.w.UpAnd((*node.Member).LeadsAny); len(led) > 0 {
			return led[c.w.Among(len(led))]
		}
	}
	if home.Up && !c.w.Chance(0.05) {
		return home
	}
	up := c.w.UpAnd(func(*node.Member) bool { return true })
	if len(up) == 0 {
		return nil
	}
	m := up[c.w.Pick(len(up))]
	c.Home = m.ID
	return m
}

// chase lets clients soon read a new write, at one member or at all running ones. The reads must include the write.
func (w *Clients) chase(key string) {
	if w.Calm {
		return
	}
	for _, m := range w.UpAnd((*node.Member).Replaced) {
		if w.Chance(w.own.Load.Crowd) {
			w.ComeTo(m, check.Get, key, 0)
		}
	}
	if len(w.History.Ops) >= w.own.Operations || !w.Chance(w.own.Load.Chase) {
		return
	}
	all := w.Chance(0.3)
	one := protocol.MemberID(1 + w.Pick(len(w.Members)))
	for _, m := range w.Members {
		if all || m.ID == one {
			w.ComeTo(m, check.Get, key, w.Between(0, w.Set.Heartbeat))
		}
	}
}

// ComeTo creates a client that asks a member for one operation.
func (w *Clients) ComeTo(m *node.Member, kind check.Kind, key string, when time.Duration) {
	w.After(when, func() {
		if m.Up && !w.Calm {
			c := &Client{w: w, Number: w.own.Clients + int(m.ID), Home: m.ID}
			c.Perform(m, c.Operation(kind, key), w.own.Patience, func() {})
		}
	})
}

// Crowd lets a client write at once at a member that has just been elected, while another one still believes that it
// leads. Once the write is acknowledged, other clients read it at the old leader: see chase.
func (w *Clients) Crowd(m *node.Member) {
	if w.own.Load.Crowd > 0 && len(w.UpAnd((*node.Member).Replaced)) > 0 && w.Chance(w.own.Load.Crowd) {
		w.ComeTo(m, check.Put, w.DrawKey(), 0)
	}
}

package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/node"
)

// Where nothing is lost, nothing is found missing by a heartbeat. At the end of some runs, when everybody lives and has
// all, some clients write at every member, and one disk is slower than the others. Each command must take effect within
// a heartbeat. So a message that a slow member drops, or that it is not sent, shows: it comes again after one at the earliest.

// busyPace draws what many clients do at the end.
var busyPace = draw.New("busy pace")

// waves are clients that write at once, some commands each, one after the other. When all have ended they begin anew. So
// what a slow member has not got yet stays little, however few entries a message may have.
type waves struct {
	w       *fault.World
	clients []client.Client
	open    int // clients that write
	left    int // waves
	most    int // commands that a client writes in a wave, at most
	lives   int // livesBegun when it began
	draw    draw.Chance
}

// demandBusyPace lets clients write at these members, and judges how long each command takes.
func demandBusyPace(w *fault.World, alive []*node.Member) {
	serving := fault.Serving(w, alive)
	a := &waves{w: w, draw: w.From(busyPace)}
	if w.Broken != nil || len(serving) == 0 || anyMissing(w, serving[0].Applier.Configs()) || slices.ContainsFunc(serving, func(m *node.Member) bool { return !m.Own.Roomy() }) {
		return
	}
	w.Set.Brisk()
	for _, m := range w.Members {
		m.Own.Brisk()
	}
	room, each := roomInWave(serving), 2
	if room < each*len(serving) {
		each = 1
	}
	for _, m := range serving {
		for range 1 + a.draw.Below(each) {
			a.clients = append(a.clients, w.Clients.Client(w.Set.Clients+len(w.Members)+2+len(a.clients), m.ID))
		}
	}
	a.most = min(mostInWave, max(1, room/len(a.clients)))
	slow := serving[a.draw.Below(len(serving))]
	slow.Late = true
	defer func() { slow.Late = false }()
	a.left = 20 + a.draw.Below(20)
	w.Tracef("CALM: %d clients write, %d times, and the disk of %s is slow; each command within %s", len(a.clients), a.left, slow.ID, a.limit())
	if !rested(w, serving) {
		return
	}
	a.lives = livesBegun(w)
	w.After(0, a.next)
	w.RunUntil(w.Now()+time.Duration(a.most*a.left)*a.limit(), func() bool { return a.left == 0 })
}

// limit is how long a command may take. What is found missing by a heartbeat takes longer.
func (a *waves) limit() time.Duration { return a.w.Set.Heartbeat }

// mostInWave is how many commands a client writes in a wave, at most.
const mostInWave = 4

// roomInWave is how many commands a wave may have where each of them is an entry. A slow member syncs each message by
// itself, and a message may have few entries. It is to have all of them in half of the time that a command may take, for
// the wave before may still be on its way.
func roomInWave(serving []*node.Member) int {
	const messages = 100 / node.Late / 2 // see brisk: a sync takes the hundredth part of a heartbeat at most
	room := math.MaxInt
	for _, m := range serving {
		if n := m.Own.Core.MaxFrameEntries; n > 0 {
			room = min(room, messages*n)
		}
	}
	return room
}

// next begins a wave when the one before has ended.
func (a *waves) next() {
	if a.open > 0 {
		return
	}
	if a.left--; a.left == 0 {
		return
	}
	a.open = len(a.clients)
	for i := range a.clients {
		a.write(&a.clients[i], 1+a.draw.Below(a.most))
	}
}

// write lets a client write so many commands.
func (a *waves) write(c *client.Client, commands int) {
	w, m := a.w, a.w.Member(c.Home)
	op := &history.Operation{Operation: check.Operation{Client: c.Number, Kind: check.Append, Key: "k0", Value: fmt.Sprintf("%d,", len(w.History.Ops))}}
	began := w.Now()
	c.Perform(m, op, a.limit(), func() {
		if livesBegun(w) != a.lives {
			a.left, a.open = 1, 0 // a member has stopped, because it noticed only now what had failed before
			a.next()
			return
		}
		var refused *member.RefusedError // by a change that was under way, or because clients of before have not ended
		if !w.History.Succeeded(op) && !errors.As(op.Err, &refused) && !errors.Is(op.Err, member.ErrOverloaded) {
			w.Violate(m.ID, fmt.Errorf("nothing fails, and a command of many has not taken effect after %s: %v", w.Now()-began, op.Err))
			return
		}
		if commands > 1 {
			a.write(c, commands-1)
			return
		}
		a.open--
		a.next()
	})
}

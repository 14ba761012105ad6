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
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// If nothing is lost, no heartbeat detects a missing entry. At the end of some runs, when all members are up and up
// to date, some clients write at every member, and one disk is slower than the others. Each command must take effect
// within a heartbeat. So a message that a slow member drops, or that is not sent to it, is detected: it is sent again
// after a heartbeat at the earliest.

// busyPace draws the load of many clients at the end. judgedBusy counts the runs that end with it.
var (
	busyPace   = draw.New("busy pace")
	judgedBusy = count.New("judged_busy", "times that many clients were to be served without delay")
)

// waves are clients that write at once, some commands each, one after the other. When all have ended the next wave
// begins. So a slow member never has much to catch up, however few entries a message may have.
type waves struct {
	w       *fault.World
	clients []client.Client
	open    int // clients that write
	left    int // waves
	most    int // maximal number of commands of a client in a wave
	lives   int // livesBegun when it began
	draw    draw.Chance
}

// widened is the share of runs at whose end all members restart with ample limits, so that this demand applies to them.
const widened = 0.3

// demandBusyPace lets clients write at these members, and judges the latency of each command.
func demandBusyPace(w *fault.World, alive []*node.Member) {
	a := &waves{w: w, draw: w.From(busyPace)}
	if a.draw.Yes(widened) && isComplete(w, alive) {
		widen(w, alive)
	}
	serving := fault.Serving(w, alive)
	if w.Broken != nil || !isComplete(w, alive) || slices.ContainsFunc(serving, func(m *node.Member) bool { return !w.Set.Roomy(m.Own) }) {
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
	w.Count(judgedBusy)
	a.lives = livesBegun(w)
	w.After(0, a.next)
	w.RunUntil(w.Now()+time.Duration(a.most*a.left)*a.limit(), func() bool { return a.left == 0 })
}

// isComplete reports whether some of these members serve, and no member of their configurations is down.
func isComplete(w *fault.World, members []*node.Member) bool {
	serving := fault.Serving(w, members)
	return len(serving) > 0 && !anyMissing(w, serving[0].Applier.Configs())
}

// widen restarts all members, with ample limits, and waits until they are up to date.
func widen(w *fault.World, alive []*node.Member) {
	w.Tracef("CALM: all members restart with ample limits")
	w.Set.Widen()
	for _, m := range w.Members {
		m.Own.Widen()
	}
	for _, m := range alive {
		m.Crash()
		w.StartMember(m)
	}
	demandProgress(w, alive, true)
}

// limit is the maximal latency of a command. With an entry that a heartbeat finds missing it is longer.
func (a *waves) limit() time.Duration { return a.w.Set.Heartbeat }

// mostInWave is the maximal number of commands of a client in a wave.
const mostInWave = 4

// roomInWave returns the maximal number of commands in a wave if each of them is an entry. A slow member syncs each
// message separately, and a message may have few entries. It should have all of them in half of the maximal latency,
// because the wave before may still be in flight.
func roomInWave(serving []*node.Member) int {
	const messages = 100 / node.Late / 2 // see Brisk: a sync takes a hundredth of a heartbeat at most
	room := math.MaxInt
	for _, m := range serving {
		if n := m.Own.Core.MaxFrameEntries; n > 0 {
			room = min(room, messages*n)
		}
	}
	return room
}

// next begins a wave when the previous one has ended.
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

// write lets a client write the given number of commands.
func (a *waves) write(c *client.Client, commands int) {
	w, m := a.w, a.w.Member(c.Home)
	op := c.Operation(check.Append, "k0")
	began := w.Now()
	c.Perform(m, op, a.limit(), func() {
		if livesBegun(w) != a.lives {
			a.left, a.open = 1, 0 // a member has stopped, because it noticed an earlier failure only now
			a.next()
			return
		}
		var refused *member.RefusedError // by a change in progress, or because earlier clients have not ended
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

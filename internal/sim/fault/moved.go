package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Members that change their address. In these runs others reach a member only if they dial its current address. The
// membership keeps the first addresses. A member that is started at a new address gets the current addresses of all
// members. No other member is told.

var faultMove = &Fault{Name: "move", Does: "members start at other addresses"}

func init() {
	faultMove.Draw = (*Settings).drawMoves
	faultMove.Strike = moveMembers
}

var membersMoved = count.New("moves", "members that moved")

// drawMoves draws whether members move.
func (s *Settings) drawMoves(d draw.Chance) {
	if s.Nodes > 1 && s.Faults[faultPromise] == 0 && d.Yes(0.08) {
		s.Faults[faultMove] = s.Election * time.Duration(6+d.Below(20))
	}
}

// moveMembers restarts members at other addresses: all members, one, or one and then another one at the first one's
// old address.
func moveMembers(w *World, m *node.Member) {
	old := m.URL
	switch x := w.Pick(3); x {
	case 0:
		for _, o := range w.Members {
			relocate(w, o, "")
		}
	case 1:
		relocate(w, m, "")
	default:
		relocate(w, m, "")
		if o := w.Members[w.Pick(len(w.Members))]; o != m {
			relocate(w, o, old)
		}
	}
	tellMoved(w)
}

// relocate restarts a member at another address; "": at a new one.
func relocate(w *World, m *node.Member, url string) {
	if m.Gone || m.Apart {
		return
	}
	if w.moved++; url == "" {
		url = fmt.Sprintf("http://m%d:%d", m.ID, w.moved+1)
	}
	w.Count(membersMoved)
	w.Tracef("FAULT %s moves from %s to %s", m.ID, m.URL, url)
	if m.URL, m.Told = url, true; m.Up {
		m.Crash()
		w.StartLater(m, w.Between(0, w.Set.Election))
	}
}

// tellMoved gives the current addresses of all members to those that have just moved.
func tellMoved(w *World) {
	var all []protocol.Member
	for _, o := range w.Members {
		if !o.Gone && !o.Retiring {
			all = append(all, protocol.Member{ID: o.ID, PeerURLs: o.URLs()})
		}
	}
	for _, m := range w.Members {
		if m.Told {
			m.Given, m.Told = all, false
		}
	}
}

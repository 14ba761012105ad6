package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// Members that move. In these runs each member listens at an address, and others reach it only while they dial
// that one. The membership keeps the first addresses. A member that is started elsewhere is told where all are
// now, and nobody else is told anything.

// faultMove: members start at other addresses.
var faultMove = &Fault{Name: "move"}

func init() {
	faultMove.Draw = (*Settings).drawMoves
	faultMove.Strike = (*World).moveMembers
}

var membersMoved = count.New("moves", "members that moved")

// drawMoves chooses whether members move.
func (s *Settings) drawMoves(d draw.Chance) {
	if s.Nodes > 1 && s.Faults[faultPromise] == 0 && d.Yes(0.08) {
		s.Faults[faultMove] = s.Election * time.Duration(6+d.Below(20))
	}
}

func (s *Settings) moves() bool { return s.Faults[faultMove] > 0 }

// home is where a member listens at first.
func home(id protocol.MemberID) string { return fmt.Sprintf("http://m%d:1", id) }

// urls are those of a member; nil in a run in which none moves.
func (m *Member) urls() []string {
	if !m.w.set.moves() {
		return nil
	}
	return []string{m.url}
}

// moveMembers starts members elsewhere: all of them, one, or one and then another one at its old address.
func (w *World) moveMembers(m *Member) {
	old := m.url
	switch x := w.Pick(3); x {
	case 0:
		for _, o := range w.members {
			w.relocate(o, "")
		}
	case 1:
		w.relocate(m, "")
	default:
		w.relocate(m, "")
		if o := w.members[w.Pick(len(w.members))]; o != m {
			w.relocate(o, old)
		}
	}
	w.tellMoved()
}

// relocate stops a member, which has another address from now on; "": a new one.
func (w *World) relocate(m *Member, url string) {
	if m.gone || m.apart != nil {
		return
	}
	if w.moved++; url == "" {
		url = fmt.Sprintf("http://m%d:%d", m.id, w.moved+1)
	}
	w.Count(membersMoved)
	w.Tracef("FAULT %s moves from %s to %s", m.id, m.url, url)
	if m.url, m.told = url, true; m.up {
		m.crash()
		w.startLater(m, w.Between(0, w.set.Election))
	}
}

// tellMoved tells those that moved just now where all members are.
func (w *World) tellMoved() {
	var all []protocol.Member
	for _, o := range w.members {
		if !o.gone && !o.retiring {
			all = append(all, protocol.Member{ID: o.id, PeerURLs: o.urls()})
		}
	}
	for _, m := range w.members {
		if m.told {
			m.given, m.told = all, false
		}
	}
}

// reaches reports whether a member dials another one where that is. If it does not, it learns so by the rules of
// production, as it does from a transport.
func (m *Member) reaches(to *Member) bool {
	if !m.w.set.moves() || !m.up {
		return true
	}
	peers := m.links.Peers()
	i := slices.IndexFunc(peers, func(p cluster.Peer) bool { return p.ID == to.id })
	there := i >= 0 && to.up && slices.Equal(peers[i].URLs, to.urls())
	switch {
	case there && !m.dials[to.id]:
		if m.dials == nil {
			m.dials = map[protocol.MemberID]bool{}
		}
		m.dials[to.id] = true
		if _, news := m.links.Up(to.id); news {
			m.w.Tracef("%s   finds %s at %s", m.id, to.id, to.url)
		}
	case !there && m.dials[to.id]:
		delete(m.dials, to.id)
		m.links.Down(to.id)
	case !there:
		if m.links.Missed(m.clock(), to.id) {
			m.w.Tracef("%s   does not find %s at %v", m.id, to.id, peers[i].URLs)
		}
	}
	m.w.Violate(m.id, m.links.Check())
	return there
}

// knowsPlaceOf reports whether a member has the address of another one: it reaches it, or was given the address, or
// has it in a membership.
func (m *Member) knowsPlaceOf(to *Member) bool {
	has := func(o protocol.Member) bool { return o.ID == to.id && slices.Contains(o.PeerURLs, to.url) }
	return !m.w.set.moves() || m.dials[to.id] || slices.ContainsFunc(m.given, has) ||
		slices.ContainsFunc(m.memberships(), func(c protocol.Config) bool { return slices.ContainsFunc(c.Members, has) })
}

// introduces makes a handshake, as a member does that has a link and sends nothing yet. In it the other one is
// told where this one is.
func (m *Member) introduces(to *Member) {
	if w, life := m.w, m.life; w.set.moves() {
		m.later(w.trip(m.id, to.id), func() {
			if to.up {
				w.linked(m, life, to)
			}
		})
	}
}

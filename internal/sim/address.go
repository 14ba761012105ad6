package sim

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// Where members listen, and where they find others.

// home is where a member listens at first.
func home(id protocol.MemberID) string { return fmt.Sprintf("http://m%d:1", id) }

// urls are those of a member; nil in a run in which none moves.
func (m *Member) urls() []string {
	if !m.w.set.Moves {
		return nil
	}
	return []string{m.url}
}

// reaches reports whether a member dials another one where that is. If it does not, it learns so by the rules of
// production, as it does from a transport.
func (m *Member) reaches(to *Member) bool {
	if !m.w.set.Moves || !m.up {
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
	return !m.w.set.Moves || m.dials[to.id] || slices.ContainsFunc(m.given, has) ||
		slices.ContainsFunc(m.memberships(), func(c protocol.Config) bool { return slices.ContainsFunc(c.Members, has) })
}

// introduces makes a handshake, as a member does that has a link and sends nothing yet. In it the other one is
// told where this one is.
func (m *Member) introduces(to *Member) {
	if w, life := m.w, m.life; w.set.Moves {
		m.later(w.trip(m.id, to.id), func() {
			if to.up {
				w.linked(m, life, to)
			}
		})
	}
}

// given is the members of which the operator tells a member that starts for the first time.
func (w *environment) given(m *Member) (all []protocol.Member) {
	if !m.join {
		return w.set.firstConfig().Members
	}
	for _, o := range w.members {
		if !o.gone && !o.retiring {
			all = append(all, protocol.Member{ID: o.id, PeerURLs: o.urls()})
		}
	}
	return all
}

// greet makes a handshake from time to time with every member that this one knows, as the links of
// production do when they connect.
func (m *Member) greet() {
	w := m.w
	if now := m.clock(); now < m.greeted+w.set.Election && m.greeted > 0 {
		return
	}
	m.greeted = m.clock()
	for _, o := range w.members {
		if o == m || !m.links.Has(o.id) || !m.reaches(o) ||
			!o.up || o.paused > w.Now() || w.net.Link(m.id, o.id).Cut || w.net.Link(o.id, m.id).Cut {
			continue
		}
		m.introduces(o)
		reason := o.links.Admit(o.memberships(), m.id)
		if reason.Final() {
			m.later(w.roundTrip(m.id, o.id), func() {
				m.memberInstance.do(func() { m.memberInstance.hosted.Departure().Refused(m.id, o.id, reason) })
			})
		}
	}
}

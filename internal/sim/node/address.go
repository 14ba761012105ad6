package node

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// Addresses of members.

// home is the first address of a member.
func home(id protocol.MemberID) string { return fmt.Sprintf("http://m%d:1", id) }

// URLs are the addresses of a member; nil in a run in which no member moves.
func (m *Member) URLs() []string {
	if !m.Env.Set.Moves {
		return nil
	}
	return []string{m.URL}
}

// reaches reports whether a member dials another one at the right address. If not, it gets an error, as from a
// transport, and follows the rules of production.
func (m *Member) reaches(to *Member) bool {
	if !m.Env.Set.Moves || !m.Up {
		return true
	}
	peers := m.Links.Peers()
	i := slices.IndexFunc(peers, func(p cluster.Peer) bool { return p.ID == to.ID })
	there := i >= 0 && to.Up && slices.Equal(peers[i].URLs, to.URLs())
	switch {
	case there && !m.dials[to.ID]:
		if m.dials == nil {
			m.dials = map[protocol.MemberID]bool{}
		}
		m.dials[to.ID] = true
		if _, news := m.Links.Up(to.ID); news {
			m.Env.Tracef("%s   finds %s at %s", m.ID, to.ID, to.URL)
		}
	case !there && m.dials[to.ID]:
		delete(m.dials, to.ID)
		m.Links.Down(to.ID)
	case !there:
		if m.Links.Missed(m.Clock(), to.ID) {
			m.Env.Tracef("%s   does not find %s at %v", m.ID, to.ID, peers[i].URLs)
		}
	}
	m.Env.Violate(m.ID, m.Links.Check())
	return there
}

// KnowsPlaceOf reports whether a member has the address of another one: it reaches it, or got the address from the
// operator or from a membership.
func (m *Member) KnowsPlaceOf(to *Member) bool {
	has := func(o protocol.Member) bool { return o.ID == to.ID && slices.Contains(o.PeerURLs, to.URL) }
	return !m.Env.Set.Moves || m.dials[to.ID] || slices.ContainsFunc(m.Given, has) ||
		slices.ContainsFunc(m.Memberships(), func(c protocol.Config) bool { return slices.ContainsFunc(c.Members, has) })
}

// introduces makes a handshake on an idle link. The other member learns the address of this one from it.
func (m *Member) introduces(to *Member) {
	if w, life := m.Env, m.Life; w.Set.Moves {
		m.Later(w.Trip(m.ID, to.ID), func() {
			if to.Up {
				w.linked(m, life, to)
			}
		})
	}
}

// given lists the members that the operator names to a member at its first start.
func (w *Environment) given(m *Member) (all []protocol.Member) {
	if !m.Join {
		return w.Set.firstConfig().Members
	}
	for _, o := range w.Members {
		if !o.Gone && !o.Retiring {
			all = append(all, protocol.Member{ID: o.ID, PeerURLs: o.URLs()})
		}
	}
	return all
}

// greet makes a handshake from time to time with every known member, as the links of production do when they connect.
func (m *Member) greet() {
	w := m.Env
	if now := m.Clock(); now < m.greeted+w.Set.Election && m.greeted > 0 {
		return
	}
	m.greeted = m.Clock()
	for _, o := range w.Members {
		if o == m || !m.Links.Has(o.ID) || !m.reaches(o) ||
			!o.Up || o.Paused > w.Now() || w.Net.Link(m.ID, o.ID).Cut || w.Net.Link(o.ID, m.ID).Cut {
			continue
		}
		m.introduces(o)
		reason := o.Links.Admit(o.Memberships(), m.ID)
		if reason.Final() {
			m.Later(w.RoundTrip(m.ID, o.ID), func() {
				m.MemberInstance.Do(func() { m.MemberInstance.Hosted.Departure().Refused(m.ID, o.ID, reason) })
			})
		}
	}
}

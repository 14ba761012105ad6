package member

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
)

// linkLinger is how many election timeouts a link to a member that left is kept, so that the member
// learns of its removal.
const linkLinger = 5

// Links decides with which other members a member keeps links. These are the members of its
// instances, for a while those that left, and guests. It is a pure rule; not safe for concurrent
// use.
type Links struct {
	self   protocol.MemberID
	linger time.Duration
	// peers are ascending by member; self is not among them.
	peers []linkedPeer

	Mutant Mutant // no-guests
}

// linkedPeer is a member with a link.
type linkedPeer struct {
	Peer
	// left is when it was first seen to have left, an instant + 1ns; 0: it has not left.
	left time.Duration
	// guest: it is not in the memberships here, perhaps because this member is behind. left is 0.
	guest bool
}

// Peer is a member with a link, and where it is to be found. Without URLs nobody knows yet.
type Peer struct {
	ID   protocol.MemberID
	URLs []string
}

// NewLinks begins with links to the members that are given at the start. They are guests: a member
// that joins follows old memberships first, in which some of them are not members yet. election is
// the election timeout.
func NewLinks(self protocol.MemberID, election time.Duration, given []protocol.Member) *Links {
	l := &Links{self: self, linger: linkLinger * election}
	for i := range given {
		l.keep(&given[i])
	}
	for i := range l.peers {
		l.peers[i].guest = true // until the memberships here say what became of it
	}
	return l
}

func (l *Links) find(id protocol.MemberID) (int, bool) {
	return slices.BinarySearchFunc(l.peers, id, func(p linkedPeer, id protocol.MemberID) int { return cmp.Compare(p.ID, id) })
}

func (l *Links) keep(m *protocol.Member) {
	if m.ID == l.self {
		return
	}
	i, known := l.find(m.ID)
	if !known {
		l.peers = slices.Insert(l.peers, i, linkedPeer{})
	}
	l.peers[i] = linkedPeer{Peer: Peer{m.ID, m.PeerURLs}}
}

// Welcome keeps a link to a guest. That is a member that has a link to this one and says where it is
// to be found. It must be let in by Admit. If it is not known here, this member is behind, and needs
// the link to answer: only with answers can a leader bring it up to date. Welcome reports whether the
// links change.
func (l *Links) Welcome(m *protocol.Member) bool {
	i, known := l.find(m.ID)
	if m.ID == l.self || known && l.peers[i].left == 0 && !l.peers[i].guest || l.Mutant == MutantNoGuests {
		return false
	}
	l.keep(m)
	if i, known = l.find(m.ID); known {
		l.peers[i].guest = true
	}
	return true
}

// Follow makes the links follow all members of the instances in force: see Linked. A member that
// joins knows no members yet. It keeps the links that were given at the start.
func (l *Links) Follow(now time.Duration, c *protocol.Config) {
	if len(c.Members) == 0 {
		return
	}
	for i := range c.Members {
		l.keep(&c.Members[i])
	}
	l.peers = slices.DeleteFunc(l.peers, func(p linkedPeer) bool {
		return p.left > 0 && now-p.left >= l.linger && !stays(c, p.ID)
	})
	for i := range l.peers {
		switch p := &l.peers[i]; {
		case stays(c, p.ID):
			p.left, p.guest = 0, false
		case p.guest && !slices.Contains(c.Removed, p.ID) || p.left > 0:
		default:
			p.left, p.guest = now+1, false
		}
	}
}

// stays reports whether a member is one of a membership, or leaves it and still counts.
func stays(c *protocol.Config, id protocol.MemberID) bool { return c.Find(id) != nil || c.Voter(id) }

// Lingers reports whether any link is kept to a member that has left, or to a guest, who may have been
// removed before it came. Then Follow is to be called from time to time.
func (l *Links) Lingers() bool {
	return slices.ContainsFunc(l.peers, func(p linkedPeer) bool { return p.left > 0 || p.guest })
}

// Peers lists the members with links, ascending.
func (l *Links) Peers() []Peer {
	out := make([]Peer, len(l.peers))
	for i := range l.peers {
		out[i] = l.peers[i].Peer
	}
	return out
}

// Has reports whether there is a link to a member.
func (l *Links) Has(id protocol.MemberID) bool {
	_, ok := l.find(id)
	return ok
}

// Admit is 0 if a member may link to this one, whose instances have applied those configurations;
// else it says why not. One that left may as long as it has a link.
func (l *Links) Admit(configs []protocol.Config, id protocol.MemberID) transport.Reason {
	if l.Has(id) {
		return 0
	}
	return Admit(configs, id)
}

// Check verifies the invariants.
func (l *Links) Check() error {
	for i := range l.peers {
		p := &l.peers[i]
		if p.ID == l.self || i > 0 && l.peers[i-1].ID >= p.ID || p.guest && p.left > 0 {
			return fmt.Errorf("links: of member %s: %v", l.self, l.peers)
		}
	}
	return nil
}

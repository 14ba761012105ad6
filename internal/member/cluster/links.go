package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
)

// linkLinger is how many election timeouts a link to a member that left is kept, so that the member
// learns of its removal.
const linkLinger = 5

// Links decides with which other members a member keeps links, and where each is dialed. These are the members of its
// instances, for a while those that left, and guests. Where a member is dialed: see places.go. It is a pure rule; not
// safe for concurrent use.
type Links struct {
	self   protocol.MemberID
	linger time.Duration
	retry  time.Duration // see places.missed
	// own is where this member itself is to be found.
	own places
	// peers are ascending by member; self is not among them.
	peers []linkedPeer
	// absent are members that had a link, and have none although no membership says that they were removed: a
	// change that added them was undone. They may be added again, and do not say again where they are.
	absent []linkedPeer

	Mutant mutant.Name // no-guests, given-unused, told-unused
}

// linkedPeer is a member with a link.
type linkedPeer struct {
	id protocol.MemberID
	places
	// left is when it was first seen to have left, an instant + 1ns; 0: it has not left.
	left time.Duration
	// guest: it is not in the memberships here, perhaps because this member is behind. left is 0.
	guest bool
}

// Peer is a member with a link, and where it is dialed. Without URLs no one knows yet.
type Peer struct {
	ID   protocol.MemberID
	URLs []string
	// Vouched are its URLs by the membership and by what this member was given, not by the member itself.
	Vouched []string
}

// NewLinks begins with links to the members that are given at the start. They are guests: a member
// that joins follows old memberships first, in which some of them are not members yet. election is
// the election timeout.
func NewLinks(self protocol.MemberID, election time.Duration, given []protocol.Member) *Links {
	l := &Links{self: self}
	l.Tune(election)
	for i := range given {
		if m := &given[i]; m.ID == self {
			l.own.add(m.PeerURLs)
		} else {
			p := l.keep(m.ID)
			p.add(m.PeerURLs)
			p.guest = true // until the memberships here say what became of it
		}
	}
	return l
}

// Tune takes in another election timeout.
func (l *Links) Tune(election time.Duration) { l.linger, l.retry = linkLinger*election, election }

func (l *Links) find(id protocol.MemberID) (int, bool) {
	return slices.BinarySearchFunc(l.peers, id, func(p linkedPeer, id protocol.MemberID) int {
		return cmp.Compare(p.id, id)
	})
}

// peer returns a member with a link; nil: it has none.
func (l *Links) peer(id protocol.MemberID) *linkedPeer {
	if i, ok := l.find(id); ok {
		return &l.peers[i]
	}
	return nil
}

// keep returns a member, which has a link from now on. The result is valid until the next call.
func (l *Links) keep(id protocol.MemberID) *linkedPeer {
	i, known := l.find(id)
	if known {
		return &l.peers[i]
	}
	p := linkedPeer{id: id}
	if i := slices.IndexFunc(l.absent, func(a linkedPeer) bool { return a.id == id }); i >= 0 {
		p.places = l.absent[i].places
		l.absent = slices.Delete(l.absent, i, i+1)
	}
	l.peers = slices.Insert(l.peers, i, p)
	return &l.peers[i]
}

// Welcome takes in where a member that has a link to this one says that it is to be found. It must be let in by
// Admit. A member that is not known here gets a link, as a guest: this member is behind, and needs the link to
// answer. Only with answers can a leader bring it up to date. Welcome reports whether Peers changes.
func (l *Links) Welcome(m *protocol.Member) bool {
	if m.ID == l.self {
		return false
	}
	p := l.peer(m.ID)
	if p != nil && p.left == 0 {
		return l.Mutant != member.MutantToldUnused && p.learn(m.PeerURLs)
	}
	if l.Mutant == member.MutantNoGuests {
		return false
	}
	p = l.keep(m.ID)
	p.left, p.guest = 0, true
	p.learn(m.PeerURLs)
	return true
}

// Follow makes the links follow all members of the active instances: see Linked. A member that joins knows no members
// yet. It keeps the links that were given at the start.
func (l *Links) Follow(now time.Duration, c *protocol.Config) {
	if len(c.Members) == 0 {
		return
	}
	for i := range c.Members {
		m := &c.Members[i]
		p := &l.own
		if m.ID != l.self {
			p = &l.keep(m.ID).places
		}
		if p.follow(m.PeerURLs); l.Mutant == member.MutantGivenUnused {
			p.given, p.use = nil, p.listed
		}
	}
	removed := func(p linkedPeer) bool { return slices.Contains(c.Removed, p.id) }
	l.absent = slices.DeleteFunc(l.absent, removed)
	l.peers = slices.DeleteFunc(l.peers, func(p linkedPeer) bool {
		gone := p.left > 0 && now-p.left >= l.linger && !stays(c, p.id)
		if gone && !removed(p) {
			p.places.up = false
			l.absent = append(l.absent, p)
		}
		return gone
	})
	for i := range l.peers {
		switch p := &l.peers[i]; {
		case stays(c, p.id):
			p.left, p.guest = 0, false
		case p.guest && !slices.Contains(c.Removed, p.id) || p.left > 0:
		default:
			p.left, p.guest = now+1, false
		}
	}
}

// Missed takes in that a member that has no link did not answer at one of the URLs in use. It reports whether
// others are in use now.
func (l *Links) Missed(now time.Duration, id protocol.MemberID) bool {
	p := l.peer(id)
	return p != nil && p.miss(now, l.retry)
}

// Up takes in that the link to a member is up. It reports whether this is news: the member answers at other URLs
// than it did before, or than the membership says.
func (l *Links) Up(id protocol.MemberID) (at Peer, news bool) {
	p := l.peer(id)
	if p == nil {
		return Peer{ID: id}, false
	}
	news = p.answer()
	return p.Peer(), news
}

// Down takes in that a link to a member broke, or that it fails for another reason than before. The latter does not
// begin the search again: two places that fail for different reasons would be tried one after the other without a
// pause.
func (l *Links) Down(id protocol.MemberID) {
	if p := l.peer(id); p != nil && p.up {
		p.up, p.misses, p.turns = false, 0, 0
	}
}

// Own is where this member is to be found, which it tells others; nil: that is not known.
func (l *Links) Own() []string { return l.own.use }

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
		out[i] = l.peers[i].Peer()
	}
	return out
}

// Peer says where the member is dialed.
func (p *linkedPeer) Peer() Peer { return Peer{p.id, p.use, slices.Concat(p.listed, p.given)} }

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
	return member.Admit(configs, id)
}

// Check verifies the invariants.
func (l *Links) Check() error {
	for i := range l.peers {
		p := &l.peers[i]
		if p.id == l.self || i > 0 && l.peers[i-1].id >= p.id || p.guest && p.left > 0 || !p.inUse() {
			return fmt.Errorf("links: of member %s: %v", l.self, l.peers)
		}
	}
	return nil
}

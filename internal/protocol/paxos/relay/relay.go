package relay

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Relays, at whoever proposes (docs/internals/multi-paxos.md). The others are in groups. What is the same for several members
// of a group goes to one of them, the relay, which passes it on, and tells of all of them together what they
// accepted. A relay only changes the way that messages take. Nobody needs one: what does not arrive is sent again
// without it.

// Relays is what a member that proposes knows of its relays; zero if it has none.
type Relays struct {
	// Groups are the others, ascending. A member that is alone in its group is in none.
	Groups [][]protocol.MemberID
	// Turn says which member of a group is the relay now. It moves on with each heartbeat.
	Turn int
	// answered is when members told of their groups last.
	answered map[protocol.MemberID]time.Duration
	// excluded are members by which something did not arrive, and until when they are no relays.
	excluded map[protocol.MemberID]time.Duration
}

// Split puts members into groups.
func (r *Relays) Split(ids []protocol.MemberID, groups int) {
	r.Groups = nil
	for i := range groups {
		if g := ids[len(ids)*i/groups : len(ids)*(i+1)/groups]; len(g) > 1 {
			r.Groups = append(r.Groups, g)
		}
	}
}

// Group is the group of a member; nil if it is in none.
func (r *Relays) Group(id protocol.MemberID) []protocol.MemberID {
	for _, g := range r.Groups {
		if slices.Contains(g, id) {
			return g
		}
	}
	return nil
}

// Exclude takes a member for no relay for a while.
func (r *Relays) Exclude(id protocol.MemberID, until time.Duration) {
	if r.excluded == nil {
		r.excluded = map[protocol.MemberID]time.Duration{}
	}
	r.excluded[id] = until
}

// ReportLost: the oldest frame on its way to a peer never arrived. If a relay was to pass it on, another one takes its
// place.
func (r *Relays) ReportLost(p *paxos.Peer, until time.Duration) {
	if len(p.Frames) > 0 && p.Frames[0].Relay != 0 {
		r.Exclude(p.Frames[0].Relay, until)
	}
}

// FrameEnd is the last slot of a frame for a peer. One that is behind its group gets what the others have already, and
// after that the same messages as they.
func (r *Relays) FrameEnd(p *paxos.Peer, peers []*paxos.Peer, end protocol.Index) protocol.Index {
	g, ahead := r.Group(p.ID), p.Next
	for _, q := range peers {
		if g != nil && q.Next > ahead && slices.Contains(g, q.ID) {
			ahead = q.Next
		}
	}
	if ahead > p.Next {
		return min(end, ahead-1)
	}
	return end
}

// Depth is how many frames may be in flight to a peer, of so many without relays. By a relay the way is twice as long. And
// who is a little slower than its group should not have to be sent to directly for that.
func (r *Relays) Depth(p *paxos.Peer, direct int) int {
	if r.Group(p.ID) == nil {
		return direct
	}
	return min(paxos.MaxDepth, 2*direct)
}

// choose is the relay for some members of a group: the next one in turn that is fit; 0 if none is.
func (r *Relays) choose(g []protocol.MemberID, among []*protocol.Message, now time.Duration, fit func(protocol.MemberID) bool) protocol.MemberID {
	for k := range g {
		id := g[(r.Turn+k)%len(g)]
		asked := slices.ContainsFunc(among, func(m *protocol.Message) bool { return m.To == id })
		if asked && now >= r.excluded[id] && fit(id) {
			return id
		}
	}
	return 0
}

// LossTimeout is after how long the oldest frame on its way to a peer should have arrived before a question that left then. On
// one link nothing overtakes. By a relay it may take longer, and much longer on slow links, as long as the relay is heard of
// and tells of others.
func (r *Relays) LossTimeout(p *paxos.Peer, c *protocol.Settings, now time.Duration, fit func(protocol.MemberID) bool) time.Duration {
	switch {
	case len(p.Frames) == 0 || p.Frames[0].Relay == 0 || !fit(p.Frames[0].Relay):
		return c.Heartbeat
	case now < r.answered[p.Frames[0].Relay]+c.ElectionTimeout/2:
		return 2 * c.ElectionTimeout
	}
	return c.ElectionTimeout / 2
}

// RecordAnswer takes notice of what a relay told.
func (r *Relays) RecordAnswer(relay protocol.MemberID, now time.Duration) {
	if r.answered == nil {
		r.answered = map[protocol.MemberID]time.Duration{}
	}
	r.answered[relay] = now
}

// Pacing keeps the members of a group together: who has room for the next frame before the others waits for them, so that one
// message is enough. since is when the first one of a group began to wait, by the first id of the group.
type Pacing struct {
	since map[protocol.MemberID]time.Duration
}

// Hold reports whether a peer waits for others of its group that have got as much and have no room. It does not wait for
// longer than a pause.
func (w *Pacing) Hold(g []protocol.MemberID, p *paxos.Peer, peers []*paxos.Peer, now, pause time.Duration, room func(*paxos.Peer) bool) bool {
	if g == nil {
		return false
	}
	if !slices.ContainsFunc(peers, func(q *paxos.Peer) bool {
		return q != p && q.Next == p.Next && !q.Lost && slices.Contains(g, q.ID) && !room(q)
	}) {
		delete(w.since, g[0])
		return false
	}
	if w.since == nil {
		w.since = map[protocol.MemberID]time.Duration{}
	}
	at, waits := w.since[g[0]]
	if !waits {
		at = now
		w.since[g[0]] = now
	}
	if now < at+pause {
		return true
	}
	delete(w.since, g[0])
	return false
}

// Recent: a relay was heard of this many heartbeats ago at most.
const Recent = 3

// Bundler is who puts messages together.
type Bundler interface {
	// Equal reports whether two messages are the same but for their receivers, and may go by a relay.
	Equal(a, b *protocol.Message) bool
	// Fit reports whether a member is well enough to be a relay.
	Fit(protocol.MemberID) bool
	// Wrap makes the message to a relay, of equal ones, of which one goes to the relay.
	Wrap(relay protocol.MemberID, among []*protocol.Message) *protocol.Message
}

// Bundle puts one message to a relay in the place of equal ones, of those after the first mark messages.
func (r *Relays) Bundle(out []*protocol.Message, mark int, now time.Duration, b Bundler) []*protocol.Message {
	if len(r.Groups) == 0 {
		return out
	}
	kept := out[:mark]
	for i := mark; i < len(out); i++ {
		m := out[i]
		if m == nil {
			continue
		}
		if among := r.equals(out[i:], b); len(among) > 1 {
			if relay := r.choose(r.Group(m.To), among, now, b.Fit); relay != 0 {
				m = b.Wrap(relay, among)
				for j := i; j < len(out); j++ {
					if slices.Contains(among, out[j]) {
						out[j] = nil
					}
				}
			}
		}
		kept = append(kept, m)
	}
	clear(out[len(kept):])
	return kept
}

// equals are the messages that are equal to the first one and go to its group, each to another member.
func (r *Relays) equals(out []*protocol.Message, b Bundler) []*protocol.Message {
	g := r.Group(out[0].To)
	if g == nil || !b.Equal(out[0], out[0]) {
		return nil
	}
	among := []*protocol.Message{out[0]}
	for _, m := range out[1:] {
		if m == nil || !slices.Contains(g, m.To) || !b.Equal(out[0], m) {
			continue
		}
		if !slices.ContainsFunc(among, func(a *protocol.Message) bool { return a.To == m.To }) {
			among = append(among, m)
		}
	}
	return among
}

// SameEntries reports whether two messages under one ballot have the same entries: those of the same slots.
func SameEntries(a, b *protocol.Message) bool {
	return slices.EqualFunc(a.Entries, b.Entries, func(x, y protocol.Entry) bool { return x.Index == y.Index })
}

// LastSlot is the slot of a message's last entry; 0 if it has none.
func LastSlot(m *protocol.Message) protocol.Index {
	if n := len(m.Entries); n > 0 {
		return m.Entries[n-1].Index
	}
	return 0
}

// Receivers are those of messages, but for one.
func Receivers(among []*protocol.Message, but protocol.MemberID) (ids []protocol.MemberID) {
	for _, m := range among {
		if m.To != but {
			ids = append(ids, m.To)
		}
	}
	return ids
}

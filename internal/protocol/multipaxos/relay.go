package multipaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Relays, at whoever proposes (docs/internals/multi-paxos.md). The others are in groups. What is the same for several members
// of a group goes to one of them, the relay, which passes it on, and tells of all of them together what they
// accepted. A relay only changes the way that messages take. Nobody needs one: what does not arrive is sent again
// without it.

// relaying is what a member that proposes knows of its relays; zero if it has none.
type relaying struct {
	// groups are the others, ascending. A member that is alone in its group is in none.
	groups [][]protocol.MemberID
	// turn says which member of a group is the relay now. It moves on with each heartbeat.
	turn int
	// told is when members told of their groups last.
	told map[protocol.MemberID]time.Duration
	// doubted are members by which something did not arrive, and until when they are no relays.
	doubted map[protocol.MemberID]time.Duration
}

// split puts members into groups.
func (r *relaying) split(ids []protocol.MemberID, groups int) {
	r.groups = nil
	for i := range groups {
		if g := ids[len(ids)*i/groups : len(ids)*(i+1)/groups]; len(g) > 1 {
			r.groups = append(r.groups, g)
		}
	}
}

// group is the group of a member; nil if it is in none.
func (r *relaying) group(id protocol.MemberID) []protocol.MemberID {
	for _, g := range r.groups {
		if slices.Contains(g, id) {
			return g
		}
	}
	return nil
}

// doubt takes a member for no relay for a while.
func (r *relaying) doubt(id protocol.MemberID, until time.Duration) {
	if r.doubted == nil {
		r.doubted = map[protocol.MemberID]time.Duration{}
	}
	r.doubted[id] = until
}

// missed: the oldest frame on its way to a peer never arrived. If a relay was to pass it on, another one takes its
// place.
func (r *relaying) missed(p *peer, until time.Duration) {
	if len(p.frames) > 0 && p.frames[0].by != 0 {
		r.doubt(p.frames[0].by, until)
	}
}

// stop is the last slot of a frame for a peer. One that is behind its group gets what the others have already, and
// after that the same messages as they.
func (r *relaying) stop(p *peer, peers []*peer, end protocol.Index) protocol.Index {
	g, ahead := r.group(p.id), p.next
	for _, q := range peers {
		if g != nil && q.next > ahead && slices.Contains(g, q.id) {
			ahead = q.next
		}
	}
	if ahead > p.next {
		return min(end, ahead-1)
	}
	return end
}

// depth is how many frames may be in flight to a peer, of so many without relays. By a relay the way is twice as long. And
// who is a little slower than its group should not have to be sent to directly for that.
func (r *relaying) depth(p *peer, direct int) int {
	if r.group(p.id) == nil {
		return direct
	}
	return min(maxDepth, 2*direct)
}

// choose is the relay for some members of a group: the next one in turn that is fit; 0 if none is.
func (r *relaying) choose(g []protocol.MemberID, among []*protocol.Message, now time.Duration, fit func(protocol.MemberID) bool) protocol.MemberID {
	for k := range g {
		id := g[(r.turn+k)%len(g)]
		asked := slices.ContainsFunc(among, func(m *protocol.Message) bool { return m.To == id })
		if asked && now >= r.doubted[id] && fit(id) {
			return id
		}
	}
	return 0
}

// wait is after how long the oldest frame on its way to a peer should have arrived before a question that left then. On
// one link nothing overtakes. By a relay it may take longer, and much longer on slow links, as long as the relay is heard of
// and tells of others.
func (r *relaying) wait(p *peer, c *protocol.Settings, now time.Duration, fit func(protocol.MemberID) bool) time.Duration {
	switch {
	case len(p.frames) == 0 || p.frames[0].by == 0 || !fit(p.frames[0].by):
		return c.Heartbeat
	case now < r.told[p.frames[0].by]+c.ElectionTimeout/2:
		return 2 * c.ElectionTimeout
	}
	return c.ElectionTimeout / 2
}

// tells takes notice of what a relay told.
func (r *relaying) tells(relay protocol.MemberID, now time.Duration) {
	if r.told == nil {
		r.told = map[protocol.MemberID]time.Duration{}
	}
	r.told[relay] = now
}

// pacing keeps the members of a group together: who has room for the next frame before the others waits for them, so that one
// message is enough. since is when the first one of a group began to wait, by the first id of the group.
type pacing struct {
	since map[protocol.MemberID]time.Duration
}

// holds reports whether a peer waits for others of its group that have got as much and have no room. It does not wait for
// longer than a pause.
func (w *pacing) holds(g []protocol.MemberID, p *peer, peers []*peer, now, pause time.Duration, room func(*peer) bool) bool {
	if g == nil {
		return false
	}
	if !slices.ContainsFunc(peers, func(q *peer) bool {
		return q != p && q.next == p.next && !q.lost && slices.Contains(g, q.id) && !room(q)
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

// prompt: a relay was heard of this many heartbeats ago at most.
const prompt = 3

// Bundler is who puts messages together.
type Bundler interface {
	// equal reports whether two messages are the same but for their receivers, and may go by a relay.
	equal(a, b *protocol.Message) bool
	// fit reports whether a member is well enough to be a relay.
	fit(protocol.MemberID) bool
	// wrap makes the message to a relay, of equal ones, of which one goes to the relay.
	wrap(relay protocol.MemberID, among []*protocol.Message) *protocol.Message
}

// bundle puts one message to a relay in the place of equal ones, of those after the first mark messages.
func (r *relaying) bundle(out []*protocol.Message, mark int, now time.Duration, b Bundler) []*protocol.Message {
	if len(r.groups) == 0 {
		return out
	}
	kept := out[:mark]
	for i := mark; i < len(out); i++ {
		m := out[i]
		if m == nil {
			continue
		}
		if among := r.equals(out[i:], b); len(among) > 1 {
			if relay := r.choose(r.group(m.To), among, now, b.fit); relay != 0 {
				m = b.wrap(relay, among)
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
func (r *relaying) equals(out []*protocol.Message, b Bundler) []*protocol.Message {
	g := r.group(out[0].To)
	if g == nil || !b.equal(out[0], out[0]) {
		return nil
	}
	among := []*protocol.Message{out[0]}
	for _, m := range out[1:] {
		if m == nil || !slices.Contains(g, m.To) || !b.equal(out[0], m) {
			continue
		}
		if !slices.ContainsFunc(among, func(a *protocol.Message) bool { return a.To == m.To }) {
			among = append(among, m)
		}
	}
	return among
}

// sameEntries reports whether two messages under one ballot have the same entries: those of the same slots.
func sameEntries(a, b *protocol.Message) bool {
	return slices.EqualFunc(a.Entries, b.Entries, func(x, y protocol.Entry) bool { return x.Index == y.Index })
}

// lastSlot is the slot of a message's last entry; 0 if it has none.
func lastSlot(m *protocol.Message) protocol.Index {
	if n := len(m.Entries); n > 0 {
		return m.Entries[n-1].Index
	}
	return 0
}

// receivers are those of messages, but for one.
func receivers(among []*protocol.Message, but protocol.MemberID) (ids []protocol.MemberID) {
	for _, m := range among {
		if m.To != but {
			ids = append(ids, m.To)
		}
	}
	return ids
}

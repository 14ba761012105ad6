package relay

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// Relays at a proposer (docs/internals/multi-paxos.md). The others are in groups. A message that is the same for
// several members of a group is sent to one of them, the relay, which forwards it, and reports what all of them
// accepted. A relay only changes the path of messages. It is never necessary: lost messages are sent again without
// it.

// Relays is a proposer's view of its relays; zero if it has none.
type Relays struct {
	// Groups are the other members, ascending. A member that is alone in its group is in none.
	Groups [][]protocol.MemberID
	// Turn selects the relay of each group. It advances with each heartbeat.
	Turn int
	// answered is when relays last reported.
	answered map[protocol.MemberID]time.Duration
	// excluded are members through which something was lost, and until when they are not relays.
	excluded map[protocol.MemberID]time.Duration
}

// Split puts members into groups, those of a zone into one, so that a message is sent to a zone once. A member without
// a zone is apart from the others. If there are fewer zones than groups, zones are divided.
func (r *Relays) Split(c *protocol.Config, ids []protocol.MemberID, groups int) {
	parts := parts(c, ids)
	if len(parts) < groups {
		ids, parts = slices.Concat(parts...), nil
		for i := range ids {
			parts = append(parts, ids[i:i+1])
		}
	}
	r.Groups = nil
	for i := range groups {
		if g := slices.Concat(parts[len(parts)*i/groups : len(parts)*(i+1)/groups]...); len(g) > 1 {
			slices.Sort(g)
			r.Groups = append(r.Groups, g)
		}
	}
}

// parts are members by their zones, in the order of the zones' lowest ids.
func parts(c *protocol.Config, ids []protocol.MemberID) (parts [][]protocol.MemberID) {
	for _, id := range ids {
		i := slices.IndexFunc(parts, func(p []protocol.MemberID) bool { return c.Near(p[0], id) })
		if i < 0 {
			i, parts = len(parts), append(parts, nil)
		}
		parts[i] = append(parts[i], id)
	}
	return parts
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

// Exclude excludes a member as a relay for a while.
func (r *Relays) Exclude(id protocol.MemberID, until time.Duration) {
	if r.excluded == nil {
		r.excluded = map[protocol.MemberID]time.Duration{}
	}
	r.excluded[id] = until
}

// ReportLost records that the oldest frame to a peer was lost. If it was sent through a relay, another one takes
// its place.
func (r *Relays) ReportLost(p *paxos.Peer, until time.Duration) {
	if len(p.Frames) > 0 && p.Frames[0].Relay != 0 {
		r.Exclude(p.Frames[0].Relay, until)
	}
}

// FrameEnd is the last slot of a frame for a peer. A peer that is behind its group is first sent what the others
// have, and then the same messages as they.
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

// Depth limits the frames in flight to a peer, given the limit without relays. Through a relay the path is twice as
// long. A peer that is a little slower than its group should not need direct messages for that reason.
func (r *Relays) Depth(p *paxos.Peer, direct int) int {
	if r.Group(p.ID) == nil {
		return direct
	}
	return min(paxos.MaxDepth, 2*direct)
}

// choose is the relay for some members of a group: the next one in turn that is fit; 0 if none is.
func (r *Relays) choose(g []protocol.MemberID, among []*protocol.Message, now time.Duration,
	fit func(protocol.MemberID) bool) protocol.MemberID {
	for k := range g {
		id := g[(r.Turn+k)%len(g)]
		asked := slices.ContainsFunc(among, func(m *protocol.Message) bool { return m.To == id })
		if asked && now >= r.excluded[id] && fit(id) {
			return id
		}
	}
	return 0
}

// LossTimeout is how long after its sending the oldest frame to a peer counts as lost, if the peer answers a later
// question. On one link messages stay in order. Through a relay a frame may take longer, and much longer on slow
// links, as long as the relay is active and reports others' answers.
func (r *Relays) LossTimeout(p *paxos.Peer, c *protocol.Settings, now time.Duration,
	fit func(protocol.MemberID) bool) time.Duration {
	switch {
	case len(p.Frames) == 0 || p.Frames[0].Relay == 0 || !fit(p.Frames[0].Relay):
		return c.Heartbeat
	case now < r.answered[p.Frames[0].Relay]+c.ElectionTimeout/2:
		return 2 * c.ElectionTimeout
	}
	return c.ElectionTimeout / 2
}

// RecordAnswer records a relay's report.
func (r *Relays) RecordAnswer(relay protocol.MemberID, now time.Duration) {
	if r.answered == nil {
		r.answered = map[protocol.MemberID]time.Duration{}
	}
	r.answered[relay] = now
}

// Pacing keeps the members of a group together: a peer with space in its window waits for the others, so that one
// message is enough. since is when the first one of a group began to wait, by the first id of the group.
type Pacing struct {
	since map[protocol.MemberID]time.Duration
}

// Hold reports whether a peer waits for others of its group that were sent as much and have no space in their
// windows. It waits at most for a pause.
func (w *Pacing) Hold(g []protocol.MemberID, p *paxos.Peer, peers []*paxos.Peer, now, pause time.Duration,
	room func(*paxos.Peer) bool) bool {
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

// Recent is how many heartbeats ago a relay must have been active.
const Recent = 3

// Bundler describes a core's messages.
type Bundler interface {
	// Equal reports whether two messages are equal except for their receivers, and may go by a relay.
	Equal(a, b *protocol.Message) bool
	// Fit reports whether a member is active enough to be a relay.
	Fit(protocol.MemberID) bool
	// Wrap returns the message to a relay, given equal ones, one of which is for the relay itself.
	Wrap(relay protocol.MemberID, among []*protocol.Message) *protocol.Message
}

// Bundle replaces equal messages by one message to a relay, among those after the first mark messages.
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

// Receivers are the receivers of messages, without one.
func Receivers(among []*protocol.Message, but protocol.MemberID) (ids []protocol.MemberID) {
	for _, m := range among {
		if m.To != but {
			ids = append(ids, m.To)
		}
	}
	return ids
}

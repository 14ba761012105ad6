package raft

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// leading is the state that only a leader has; zero in every other role.
type leading struct {
	// ready: preparation is done and the first entry is in the log. From then on all
	// bodies after the commit index are whole here (C3).
	ready bool
	pre   preparation
	// first is the index of this term's first entry.
	first protocol.Index
	// peers are all others that receive the log, sorted by id.
	peers []*tracker.Progress
	// uncommitted is the bytes of the entries after commit, and marks is about all that were appended in
	// this leader's term.
	uncommitted int
	marks       code.Marks
	// beat is when the next heartbeat is due. beaten is the commit index at the last heartbeat.
	beat   time.Duration
	beaten protocol.Index
	// round is the number of the latest confirmation of leadership that was asked for.
	round uint64
	reads reads
	hand  handover
	// restripe is about whole copies that a membership change waits for.
	restripe code.Restripe
}

// peer returns what is known of a member, nil if it does not receive our log.
func (l *leading) peer(id protocol.MemberID) *tracker.Progress { return tracker.Find(l.peers, id) }

// letLateGo stops sending to removed members whose deadline has passed.
func (l *leading) letLateGo(now time.Duration) {
	for i := len(l.peers) - 1; i >= 0; i-- {
		if p := l.peers[i]; p.LeaveBy != 0 && now >= p.LeaveBy {
			l.forget(p)
		}
	}
}

// awaits notes which members wait for an entry that was appended.
func (l *leading) awaits(e *protocol.Entry, self protocol.MemberID) {
	by := e.ID.Session.Member
	if e.Kind == protocol.EntryBatch && by == self {
		return
	}
	for _, p := range l.peers {
		if e.Kind != protocol.EntryBatch || p.ID == by {
			p.Awaits = e.Index
		}
	}
}

// forget stops sending to a member.
func (l *leading) forget(p *tracker.Progress) {
	l.peers = slices.DeleteFunc(l.peers, func(q *tracker.Progress) bool { return q == p })
}

// track sets peers to the members of the configuration. It keeps those that just left it, and
// adds those that it retains.
func (l *leading) track(c *members.Configs, self protocol.MemberID, last protocol.Index, now time.Duration) {
	all := c.Config.All()
	for _, p := range l.peers {
		switch {
		case slices.Contains(all, p.ID):
			p.Leaving, p.LeaveBy = 0, 0
		case p.Leaving == 0:
			p.Leaving = c.At
		}
	}
	for _, id := range all {
		if id != self && l.peer(id) == nil {
			l.peers = append(l.peers, &tracker.Progress{ID: id, Next: last + 1, Since: now, Awaits: last})
		}
	}
	for _, id := range c.Others {
		if id != self && l.peer(id) == nil && c.Retains(id) {
			left := max(1, c.At) // an instance that begins may be without it from the start
			l.peers = append(l.peers,
				&tracker.Progress{ID: id, Next: last + 1, Since: now, Leaving: left, Awaits: last})
		}
	}
	slices.SortFunc(l.peers, func(a, b *tracker.Progress) int { return cmp.Compare(a.ID, b.ID) })
}

// heard is the latest instant at which a quorum of a set had been heard from (check-quorum, Raft
// §6.2). A member counts as heard from when this leader began to track it.
func (l *leading) heard(set quorum.Set, self protocol.MemberID, now time.Duration) time.Duration {
	v := set.Agreed(func(id protocol.MemberID) uint64 {
		if id == self {
			return message.Stamp(now)
		}
		if p := l.peer(id); p != nil {
			return max(p.Heard, message.Stamp(p.Since))
		}
		return 0
	})
	return time.Duration(v) - 1
}

// confirmed is the highest round that a quorum of a set confirmed.
func (l *leading) confirmed(set quorum.Set, self protocol.MemberID) uint64 {
	return set.Agreed(func(id protocol.MemberID) uint64 {
		if id == self {
			return l.round
		}
		if p := l.peer(id); p != nil {
			return p.Round
		}
		return 0
	})
}

// mostAdvanced is the voter that was heard from within a time and matches furthest, nil if there is none.
func (l *leading) mostAdvanced(c *members.Configs, now, within time.Duration) *tracker.Progress {
	var best *tracker.Progress
	for _, p := range l.peers {
		if c.Remains(p.ID) && p.HeardWithin(now, within) && (best == nil || p.Match > best.Match) {
			best = p
		}
	}
	return best
}

// dismiss gives members that left a deadline; the configuration without them is committed.
func (l *leading) dismiss(c *members.Configs, by time.Duration) {
	for _, p := range l.peers {
		switch {
		case p.Leaving == 0:
		case c.Retains(p.ID):
			p.LeaveBy = 0
		case p.LeaveBy == 0:
			p.LeaveBy = by
		}
	}
}

package raft

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// leading is the state that only a leader has; zero in every other role.
type leading struct {
	// ready: preparation is done and the first entry is in the log. From then on all
	// bodies after the commit index are whole here (C3).
	ready bool
	pre   preparation
	since time.Duration
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
func (l *leading) peer(id protocol.MemberID) *tracker.Progress {
	for _, p := range l.peers {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// letLateGo stops sending to removed members whose deadline has passed.
func (l *leading) letLateGo(now time.Duration) {
	for i := len(l.peers) - 1; i >= 0; i-- {
		if p := l.peers[i]; p.LeaveBy != 0 && now >= p.LeaveBy {
			l.forget(p)
		}
	}
}

// forget stops sending to a member.
func (l *leading) forget(p *tracker.Progress) {
	l.peers = slices.DeleteFunc(l.peers, func(q *tracker.Progress) bool { return q == p })
}

package server

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/braidlog/braid"
)

// leaderChange is a change of an instance's leader, or the start of an election. Instances with the same change share a
// line.
type leaderChange struct {
	from, to braid.MemberID
	term     braid.Term
	ballot   string // the term as a ballot; "": it is none
	later    bool   // the term is later than before
	election bool   // this member stands for election, and the leader is the same
	epochs   bool   // all members lead slots
}

// leaders are the lines about changes of leaders.
func (e *eventLog) leaders(now *observation) (lines []line) {
	var order []leaderChange
	changed := map[leaderChange][]braid.InstanceID{}
	for i := range now.Instances {
		is := &now.Instances[i]
		was := find(e.before, is.Instance)
		if was == nil {
			continue
		}
		c := leaderChange{
			from: was.Leader, to: is.Leader, term: is.Term, ballot: is.BallotText(), later: is.Term > was.Term,
			epochs: is.Epoch != nil,
		}
		if c.from == c.to {
			c.election = is.Role.String() == candidate && (was.Role != is.Role || was.Term != is.Term)
			if !c.election {
				continue
			}
		}
		if changed[c] == nil {
			order = append(order, c)
		}
		changed[c] = append(changed[c], is.Instance)
	}
	for _, c := range order {
		ids := changed[c]
		l := e.leader(now, c, ids[0])
		if c.ballot != "" {
			l.args = append(l.args, "ballot", c.ballot)
		}
		if len(now.Instances) > 1 {
			l.args = append(l.args, "instances", instances(ids))
		}
		lines = append(lines, l)
		e.noteLeader(now, c, ids)
	}
	return lines
}

// noteLeader notes since when instances have no leader.
func (e *eventLog) noteLeader(now *observation, c leaderChange, ids []braid.InstanceID) {
	_, silent := unreachable(now, c.from)
	for _, id := range ids {
		switch {
		case c.to != 0:
			delete(e.lost, id)
		case !c.election:
			e.lost[id] = now.At.Add(-silent)
		}
	}
}

// candidate is the role of a member that stands for election.
const candidate = "candidate"

// leader is the line about a change of instances, id among them.
func (e *eventLog) leader(now *observation, c leaderChange, id braid.InstanceID) line {
	switch {
	case c.election:
		return line{slog.LevelInfo, "election", "this member stands for election", []any{"term", c.term}}
	case c.epochs && c.to != 0:
		return line{slog.LevelInfo, "first-leader", "another member is the leader to clients of etcd's API",
			[]any{"leader", c.to, "term", c.term, "former", c.from}}
	case c.to == 0 && c.from == now.Self:
		return e.steppedDown(now, c)
	case c.to == 0:
		return leaderLost(now, c)
	}
	l := line{slog.LevelInfo, "leader-found", "follows a leader", []any{"leader", c.to, "term", c.term}}
	switch {
	case c.to == now.Self:
		l.event, l.message = "leads", "this member leads"
	case c.from != 0:
		l.event, l.message = "leader-moved", "another member leads"
	}
	if c.from != 0 {
		l.args = append(l.args, "former", c.from)
	}
	if stalled := e.recentStall(now); c.from == now.Self && stalled > 0 {
		l.args = append(l.args, "stalled", stalled)
	}
	_, without := unreachable(now, c.from)
	if since, ok := e.lost[id]; ok {
		without = now.At.Sub(since)
	}
	if without > 0 {
		l.args = append(l.args, "without", without)
	}
	return l
}

// leaderLost is the line of a member that followed a leader and follows none. A later term alone is no fault: every
// handover begins one.
func leaderLost(now *observation, c leaderChange) line {
	l := line{slog.LevelWarn, "leader-lost", "lost the leader", []any{"leader", c.from, "term", c.term}}
	switch reason, silent := unreachable(now, c.from); {
	case reason != "":
		l.args = append(l.args, "reason", reason)
	case silent > 0:
		l.args = append(l.args, "silent", silent)
	case c.later:
		l.level, l.args = slog.LevelInfo, append(l.args, "reason", electionBegan(c.term))
	case !c.epochs:
		l.args = append(l.args, "reason", stoppedHeartbeats)
	}
	return l
}

// stoppedHeartbeats is the reason for the loss of a leader that is connected and not silent.
const stoppedHeartbeats = "its heartbeats stopped, though the link to it is up: its disk may be stalled"

func electionBegan(term braid.Term) string { return fmt.Sprintf("an election began in term %d", term) }

// steppedDown is the line of a member that led and knows no leader.
func (e *eventLog) steppedDown(now *observation, c leaderChange) line {
	l := line{slog.LevelWarn, "stepped-down", "this member no longer leads", []any{"term", c.term}}
	switch stalled := e.recentStall(now); {
	case stalled > 0:
		l.args = append(l.args, "stalled", stalled)
	case now.Drained:
		l.level, l.args = slog.LevelInfo, append(l.args, "reason", "it is drained")
	case c.later:
		l.level, l.args = slog.LevelInfo, append(l.args, "reason", electionBegan(c.term))
	case quiet(now) > 0:
		l.args = append(l.args, "reason", fmt.Sprintf("%d of %d other members do not answer", quiet(now),
			len(now.Links.Peers)))
	}
	return l
}

// quiet is the number of members that have sent nothing for a while, or to which there is no link.
func quiet(now *observation) (n int) {
	for i := range now.Links.Peers {
		if reason, silent := unreachable(now, now.Links.Peers[i].ID); reason != "" || silent > 0 {
			n++
		}
	}
	return n
}

// silence is the time without a message after which a member counts as silent. Heartbeats are more frequent by default.
const silence = 300 * time.Millisecond

// unreachable is the reason why the link to a member is down ("": it is up, or not known), and how long the member has
// sent nothing (0: it is not silent, or that is not known).
func unreachable(now *observation, id braid.MemberID) (reason string, silent time.Duration) {
	for i := range now.Links.Peers {
		p := &now.Links.Peers[i]
		if p.ID != id {
			continue
		}
		if !p.Connected {
			reason = "the link to it is down: " + p.LastError
		}
		if quiet := now.At.Sub(p.Heard); !p.Heard.IsZero() && quiet > silence {
			silent = quiet
		}
	}
	return reason, silent
}

// instances names some instances.
func instances(ids []braid.InstanceID) string {
	if len(ids) == 1 {
		return fmt.Sprintf("instance %d", ids[0])
	}
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return "instances " + strings.Join(words, ", ")
}

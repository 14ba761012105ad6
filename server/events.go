package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/history"
	"github.com/braidlog/braid/server/internal/page"
)

// slowDisk is how long a write to the log may take before the disk counts as stalled.
const slowDisk = time.Second

// eventLog logs changes of this member's status as events, except those that other parts log when they happen. It is
// safe for concurrent use.
type eventLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	before *observation
	lost   map[braid.InstanceID]time.Time // the time of the leader's last message, while there is no leader
	slow   time.Time                      // the start of the write that takes too long; zero: none does
}

// observation is the status of a member at a time, with the alarms that are raised.
type observation struct {
	braid.Status
	alarms []page.Alarm
	remedy func(*page.Alarm) string
}

// line is a line of the log.
type line struct {
	level   slog.Level
	event   string
	message string
	args    []any
}

// observe logs the differences between a status and the last one. It ignores a status older than that.
func (e *eventLog) observe(now *observation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.before != nil && now.At.Before(e.before.At) {
		return
	}
	for _, l := range e.lines(now) {
		e.logger.Log(context.Background(), l.level, l.message, append([]any{history.EventKey, l.event}, l.args...)...)
	}
	e.before = now
}

// lines are the lines about the differences; the first status has none.
func (e *eventLog) lines(now *observation) []line {
	if e.before == nil {
		e.lost = map[braid.InstanceID]time.Time{}
		return nil
	}
	return slices.Concat(e.leaders(now), bans(e.before, now), memberships(e.before, now), shape(e.before, now),
		alarms(e.before, now), e.disk(now))
}

// leaderChange is a change of an instance's leader, or the start of an election. Instances with the same change share a
// line.
type leaderChange struct {
	from, to braid.MemberID
	term     braid.Term
	ballot   string // the term as a ballot; "": it is none
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
			from: was.Leader, to: is.Leader, term: is.Term, ballot: is.BallotText(), epochs: is.Epoch != nil,
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
		return line{slog.LevelInfo, "election", "stands for election", []any{"term", c.term}}
	case c.epochs && c.to != 0:
		return line{slog.LevelInfo, "first-leader", "another member is the leader to clients of etcd's API",
			[]any{"leader", c.to, "term", c.term, "former", c.from}}
	case c.to == 0:
		l := line{slog.LevelWarn, "leader-lost", "lost the leader", []any{"leader", c.from, "term", c.term}}
		if reason, silent := unreachable(now, c.from); reason != "" {
			l.args = append(l.args, "reason", reason)
		} else if silent > 0 {
			l.args = append(l.args, "silent", silent)
		}
		return l
	}
	l := line{slog.LevelInfo, "leader-found", "follows a leader", []any{"leader", c.to, "term", c.term}}
	switch {
	case c.to == now.Self:
		l.event, l.message = "leads", "leads"
	case c.from != 0:
		l.event, l.message = "leader-moved", "another member leads"
	}
	if c.from != 0 {
		l.args = append(l.args, "former", c.from)
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

// silence is how long a member sends nothing before it counts as silent. Pings are more frequent.
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

func find(m *observation, id braid.InstanceID) *braid.InstanceStatus {
	for i := range m.Instances {
		if m.Instances[i].Instance == id {
			return &m.Instances[i]
		}
	}
	return nil
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

// bans are the lines about members that are banned from leading slots, and about the ends of bans.
func bans(before, now *observation) (lines []line) {
	for i := range now.Instances {
		is, was := now.Instances[i].Epoch, epochOf(before, now.Instances[i].Instance)
		if is == nil || was == nil {
			continue
		}
		for j, id := range is.Banned {
			if slices.Contains(was.Banned, id) {
				continue
			}
			l := line{slog.LevelWarn, "banned", "a member leads no slots", []any{"member", id, "epoch", is.Number}}
			if j < len(is.BannedUntil) && is.BannedUntil[j] > 0 {
				l.args = append(l.args, "until", is.BannedUntil[j])
			}
			lines = append(lines, l)
		}
		for _, id := range was.Banned {
			if !slices.Contains(is.Banned, id) {
				lines = append(lines, line{slog.LevelInfo, "unbanned", "a member leads slots again",
					[]any{"member", id, "epoch", is.Number}})
			}
		}
	}
	return lines
}

func epochOf(m *observation, id braid.InstanceID) *braid.EpochStatus {
	if in := find(m, id); in != nil {
		return in.Epoch
	}
	return nil
}

// memberships are the lines about changes of the membership.
func memberships(before, now *observation) (lines []line) {
	changed := func(m *braid.Member, change string) {
		lines = append(lines, line{slog.LevelInfo, "membership", "the membership changed",
			[]any{"member", m.ID, "change", change}})
	}
	for i := range now.Members {
		m := &now.Members[i]
		at := slices.IndexFunc(before.Members, func(o braid.Member) bool { return o.ID == m.ID })
		if at < 0 {
			changed(m, "was added as a "+seat(m))
			continue
		}
		for _, change := range differences(&before.Members[at], m) {
			changed(m, change)
		}
	}
	for i := range before.Members {
		m := &before.Members[i]
		if !slices.ContainsFunc(now.Members, func(o braid.Member) bool { return o.ID == m.ID }) {
			changed(m, "was removed")
		}
	}
	return lines
}

func seat(m *braid.Member) string {
	if m.Learner {
		return "learner"
	}
	return "voter"
}

// differences are the changes of a member, in words.
func differences(was, is *braid.Member) (out []string) {
	if seat(was) != seat(is) {
		out = append(out, "became a "+seat(is))
	}
	if was.Name != is.Name && was.Name != "" {
		out = append(out, "has another name than "+was.Name)
	}
	if was.Zone != is.Zone {
		out = append(out, fmt.Sprintf("is in zone %q", is.Zone))
	}
	if !slices.Equal(was.PeerURLs, is.PeerURLs) {
		out = append(out, "has the peer URLs "+strings.Join(is.PeerURLs, ", "))
	}
	if !slices.Equal(was.ClientURLs, is.ClientURLs) && len(was.ClientURLs) > 0 {
		out = append(out, "has the client URLs "+strings.Join(is.ClientURLs, ", "))
	}
	return out
}

// shape has the lines about a change of the protocol or of the number of instances.
func shape(before, now *observation) (lines []line) {
	if before.Protocol != now.Protocol {
		lines = append(lines, line{slog.LevelInfo, "protocol", "the protocol changed",
			[]any{"protocol", now.Protocol, "former", before.Protocol, "profile", now.Profile.Version}})
	}
	if was, is := len(before.Instances), len(now.Instances); was != is && was > 0 && is > 0 {
		lines = append(lines, line{slog.LevelInfo, "instances", "the number of instances changed",
			[]any{"instances", is, "former", was}})
	}
	return lines
}

// alarms are the lines about alarms that were raised or ended.
func alarms(before, now *observation) (lines []line) {
	same := func(a, b *page.Alarm) bool { return a.Name == b.Name && a.Member == b.Member }
	for i := range now.alarms {
		a := &now.alarms[i]
		if !slices.ContainsFunc(before.alarms, func(o page.Alarm) bool { return same(&o, a) }) {
			lines = append(lines, line{slog.LevelWarn, "alarm-raised", "an alarm is raised",
				[]any{"alarm", a.Name, "member", a.Member, "remedy", now.remedy(a)}})
		}
	}
	for i := range before.alarms {
		a := &before.alarms[i]
		if !slices.ContainsFunc(now.alarms, func(o page.Alarm) bool { return same(&o, a) }) {
			lines = append(lines, line{slog.LevelInfo, "alarm-ended", "an alarm has ended",
				[]any{"alarm", a.Name, "member", a.Member}})
		}
	}
	return lines
}

// disk has the lines about a stalled disk.
func (e *eventLog) disk(now *observation) []line {
	began := now.Log.SyncStart
	if !e.slow.IsZero() && !began.Equal(e.slow) {
		took := now.At.Sub(e.slow)
		e.slow = time.Time{}
		return []line{{slog.LevelInfo, "disk-back", "the disk of the log writes again", []any{"after", took}}}
	}
	if e.slow.IsZero() && !began.IsZero() && now.At.Sub(began) > slowDisk {
		e.slow = began
		return []line{{slog.LevelWarn, "slow-disk", "a write to the log is slow", []any{"for", now.At.Sub(began)}}}
	}
	return nil
}

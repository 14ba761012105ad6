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

// slowDisk is how long a write to the log may take before the disk counts as one that stands still.
const slowDisk = time.Second

// chronicle logs, as events, how the status of this member changes. The lines that the log writes itself when something
// happens are not among them. It is safe for concurrent use.
type chronicle struct {
	logger *slog.Logger

	mu     sync.Mutex
	before *moment
	lost   map[braid.InstanceID]time.Time // since when an instance has no leader here
	slow   time.Time                      // the write that takes too long; zero: none does
}

// moment is the status of a member at a time, with the alarms that are raised.
type moment struct {
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

// note logs how the status differs from the one before. One that is older is left out.
func (c *chronicle) note(now *moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before != nil && now.At.Before(c.before.At) {
		return
	}
	for _, l := range c.step(now) {
		c.logger.Log(context.Background(), l.level, l.message, append([]any{history.EventKey, l.event}, l.args...)...)
	}
	c.before = now
}

// step is what there is to log.
func (c *chronicle) step(now *moment) []line {
	if c.lost == nil {
		c.lost = map[braid.InstanceID]time.Time{}
	}
	if c.before == nil {
		return nil
	}
	lines := c.leaders(now)
	lines = append(lines, bans(c.before, now)...)
	lines = append(lines, memberships(c.before, now)...)
	lines = append(lines, shape(c.before, now)...)
	lines = append(lines, alarms(c.before, now)...)
	return append(lines, c.disk(now)...)
}

// lead is how the leader of an instance changed; instances with the same change are told together.
type lead struct {
	from, to braid.MemberID
	term     braid.Term
	ballot   string // the term as a ballot; "": it is none
	stands   bool
	many     bool // all members lead slots
}

func (c *chronicle) leaders(now *moment) (lines []line) {
	var order []lead
	of := map[lead][]braid.InstanceID{}
	for i := range now.Instances {
		in := &now.Instances[i]
		was := find(c.before, in.Instance)
		if was == nil {
			continue
		}
		l := lead{from: was.Leader, to: in.Leader, term: in.Term, ballot: in.BallotText(), many: in.Epoch != nil}
		if was.Leader == in.Leader {
			l.stands = in.Role.String() == candidate && (was.Role != in.Role || was.Term != in.Term)
			if !l.stands {
				continue
			}
		}
		if of[l] == nil {
			order = append(order, l)
		}
		of[l] = append(of[l], in.Instance)
	}
	for _, l := range order {
		which := of[l]
		added := c.leader(now, l, which[0])
		if l.ballot != "" {
			added.args = append(added.args, "ballot", l.ballot)
		}
		if len(now.Instances) > 1 {
			added.args = append(added.args, "instances", instances(which))
		}
		lines = append(lines, added)
		for _, id := range which {
			switch {
			case l.to != 0:
				delete(c.lost, id)
			case !l.stands:
				_, silent := unreachable(now, l.from)
				c.lost[id] = now.At.Add(-silent)
			}
		}
	}
	return lines
}

// candidate is the role of a member that stands for election.
const candidate = "candidate"

// leader is the line about a change of the leader of some instances, one of which is id.
func (c *chronicle) leader(now *moment, l lead, id braid.InstanceID) line {
	switch {
	case l.stands:
		return line{slog.LevelInfo, "election", "stands for election", []any{"term", l.term}}
	case l.many && l.to != 0:
		return line{slog.LevelInfo, "first-leader", "another member is the leader to clients of etcd's API",
			[]any{"leader", l.to, "term", l.term, "former", l.from}}
	case l.to == 0:
		out := line{slog.LevelWarn, "leader-lost", "lost the leader", []any{"leader", l.from, "term", l.term}}
		if reason, silent := unreachable(now, l.from); reason != "" {
			out.args = append(out.args, "reason", reason)
		} else if silent > 0 {
			out.args = append(out.args, "silent", silent)
		}
		return out
	}
	out := line{slog.LevelInfo, "leader-found", "follows a leader", []any{"leader", l.to, "term", l.term}}
	switch {
	case l.to == now.Self:
		out.event, out.message = "leads", "leads"
	case l.from != 0:
		out.event, out.message = "leader-moved", "another member leads"
	}
	if l.from != 0 {
		out.args = append(out.args, "former", l.from)
	}
	_, without := unreachable(now, l.from)
	if since, ok := c.lost[id]; ok {
		without = now.At.Sub(since)
	}
	if without > 0 {
		out.args = append(out.args, "without", without)
	}
	return out
}

// silence is for how long nothing comes from a member that counts as silent: pings come more often.
const silence = 300 * time.Millisecond

// unreachable is why this member does not reach another one ("": it does, as far as it knows), and for how long nothing
// has come from it (0: something did just now, or it is not known).
func unreachable(now *moment, id braid.MemberID) (reason string, silent time.Duration) {
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

func find(m *moment, id braid.InstanceID) *braid.InstanceStatus {
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

// bans are the lines about members that lead no slots any more, or again.
func bans(before, now *moment) (lines []line) {
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

func epochOf(m *moment, id braid.InstanceID) *braid.EpochStatus {
	if in := find(m, id); in != nil {
		return in.Epoch
	}
	return nil
}

// memberships are the lines about changes of the membership.
func memberships(before, now *moment) (lines []line) {
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

// differences are how a member changed.
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

// shape are the lines about another protocol or another number of instances.
func shape(before, now *moment) (lines []line) {
	if before.Protocol != now.Protocol {
		lines = append(lines, line{slog.LevelInfo, "protocol", "the protocol is another one",
			[]any{"protocol", now.Protocol, "former", before.Protocol, "profile", now.Profile.Version}})
	}
	if was, is := len(before.Instances), len(now.Instances); was != is && was > 0 && is > 0 {
		lines = append(lines, line{slog.LevelInfo, "instances", "the number of instances is another one",
			[]any{"instances", is, "former", was}})
	}
	return lines
}

// alarms are the lines about alarms that were raised, or have ended.
func alarms(before, now *moment) (lines []line) {
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

// disk are the lines about a disk that stands still.
func (c *chronicle) disk(now *moment) []line {
	began := now.Log.SyncStart
	if !c.slow.IsZero() && !began.Equal(c.slow) {
		took := now.At.Sub(c.slow)
		c.slow = time.Time{}
		return []line{{slog.LevelInfo, "disk-back", "the disk of the log writes again", []any{"after", took}}}
	}
	if c.slow.IsZero() && !began.IsZero() && now.At.Sub(began) > slowDisk {
		c.slow = began
		return []line{{slog.LevelWarn, "slow-disk", "a write to the log takes long", []any{"for", now.At.Sub(began)}}}
	}
	return nil
}

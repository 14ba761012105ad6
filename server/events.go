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
	past   stall                          // the last such write that has ended
}

// stall is a stall of the disk that is over.
type stall struct {
	took time.Duration
	over time.Time // its end
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

// lines are the lines about the differences. Those of the first status are about alarms that are raised.
func (e *eventLog) lines(now *observation) []line {
	if e.before == nil {
		e.lost = map[braid.InstanceID]time.Time{}
		return alarms(&observation{}, now)
	}
	return slices.Concat(e.leaders(now), bans(e.before, now), memberships(e.before, now), shape(e.before, now),
		alarms(e.before, now), mended(e.before, now), e.disk(now))
}

func find(m *observation, id braid.InstanceID) *braid.InstanceStatus {
	for i := range m.Instances {
		if m.Instances[i].Instance == id {
			return &m.Instances[i]
		}
	}
	return nil
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

// mended has the line about damage that was repaired.
func mended(before, now *observation) []line {
	repaired := func(m *observation) uint64 { return m.Disk.Mended + m.Bodies.Repaired }
	places := repaired(now) - repaired(before)
	if repaired(now) <= repaired(before) {
		return nil
	}
	l := line{slog.LevelInfo, "mended", "damage on the disk is repaired", []any{"places", places}}
	if left := now.Disk.Damaged - now.Disk.Mended; now.Disk.Failing != nil && left > 0 {
		l.args = append(l.args, "left", left, "err", now.Disk.Failing)
	}
	return []line{l}
}

// diskRemedy is the advice to operators about a stalled disk.
const diskRemedy = "Another member leads meanwhile if this one led. Find what else uses the disk, or replace it."

// disk has the lines about a stalled disk.
func (e *eventLog) disk(now *observation) []line {
	stalled := e.stalled(now)
	switch began := now.Log.SyncStart; {
	case !e.slow.IsZero() && !began.Equal(e.slow):
		e.slow, e.past = time.Time{}, stall{stalled, now.At}
		return []line{{slog.LevelInfo, "disk-back", "the disk of the log writes again", []any{"after", stalled}}}
	case e.slow.IsZero() && stalled > 0:
		e.slow = began
		return []line{{slog.LevelWarn, "slow-disk", "a write to the log is slow",
			[]any{"for", stalled, "remedy", diskRemedy}}}
	}
	return nil
}

// stalled returns the time for which the disk has been stalled, until now or until a stall that just ended; 0: it was
// not stalled.
func (e *eventLog) stalled(now *observation) time.Duration {
	began := e.slow
	if began.IsZero() {
		began = now.Log.SyncStart
	}
	if took := now.At.Sub(began); !began.IsZero() && took > slowDisk {
		return took
	}
	return 0
}

// recentStall returns stalled, or the length of a stall that ended at most slowDisk ago.
func (e *eventLog) recentStall(now *observation) time.Duration {
	if stalled := e.stalled(now); stalled > 0 || now.At.Sub(e.past.over) > slowDisk {
		return stalled
	}
	return e.past.took
}

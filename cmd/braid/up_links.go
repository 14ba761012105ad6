package main

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/control"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/transport/netspec"
)

// slowBy is what control.Slow adds to the latency of each link of a member, each way.
const slowBy = 100 * time.Millisecond

// links is the emulation of a cluster's links: that of --net, with the changes of some members. It is immutable.
type links struct {
	base    string // by --net
	parsed  netspec.Spec
	members []string
	changed map[string]control.Action // Cut or Slow
}

// with returns the links after an action on a member.
func (l *links) with(member string, a control.Action) *links {
	out := *l
	out.changed = maps.Clone(l.changed)
	if delete(out.changed, member); a != control.Heal {
		out.changed[member] = a
	}
	return &out
}

// spec returns the links in the form that netspec.Parse reads.
func (l *links) spec() string {
	if len(l.changed) == 0 {
		return l.base
	}
	var parts []string
	if base := l.parsed.String(); base != "" {
		parts = append(parts, base)
	}
	for _, from := range l.members {
		for _, to := range l.members {
			if from == to {
				continue
			}
			switch a, b := l.changed[from], l.changed[to]; {
			case a == control.Cut || b == control.Cut:
				parts = append(parts, fmt.Sprintf("%s>%s:loss=100%%", from, to))
			case a == control.Slow || b == control.Slow:
				latency := l.parsed.Link(from, to).Latency + slowBy
				parts = append(parts, fmt.Sprintf("%s>%s:latency=%s", from, to, latency))
			}
		}
	}
	return strings.Join(parts, ";")
}

// words describes the change of the links of a member; "": none.
func (l *links) words(member string) string {
	switch l.changed[member] {
	case control.Cut:
		return "cut off from the other members"
	case control.Slow:
		return fmt.Sprintf("slowed down by %s each way", slowBy)
	}
	return ""
}

// event is words as a sentence about the member.
func (l *links) event(member string) string {
	if words := l.words(member); words != "" {
		return "is " + words
	}
	return "has its links back"
}

// newLinks returns the links of a cluster that begins.
func newLinks(m *launch.Manifest) *links {
	l := &links{base: m.Net, changed: map[string]control.Action{}}
	l.parsed, _ = netspec.Parse(m.Net) // up has validated it
	for _, member := range m.Members {
		l.members = append(l.members, member.Name)
	}
	return l
}

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

// links is how the links of a cluster are emulated: as by --net, except those of some members. It never
// changes.
type links struct {
	base    string // by --net
	parsed  netspec.Spec
	members []string
	changed map[string]control.Action // Cut or Slow
}

// with is the links after an action on a member.
func (l *links) with(member string, a control.Action) *links {
	out := *l
	out.changed = maps.Clone(l.changed)
	if delete(out.changed, member); a != control.Heal {
		out.changed[member] = a
	}
	return &out
}

// spec is what netspec.Parse reads.
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

// words says what an action did to the links of a member; "": nothing.
func (l *links) words(member string) string {
	switch l.changed[member] {
	case control.Cut:
		return "cut off from the other members"
	case control.Slow:
		return fmt.Sprintf("links are %s slower each way", slowBy)
	}
	return ""
}

// event says of a member what its links are now.
func (l *links) event(member string) string {
	switch l.changed[member] {
	case control.Cut:
		return "is cut off from the other members"
	case control.Slow:
		return fmt.Sprintf("has links that are %s slower each way", slowBy)
	}
	return "has its links back"
}

// newLinks is how links are emulated when a cluster begins.
func newLinks(m *launch.Manifest) *links {
	l := &links{base: m.Net, changed: map[string]control.Action{}}
	l.parsed, _ = netspec.Parse(m.Net) // up has validated it
	for _, member := range m.Members {
		l.members = append(l.members, member.Name)
	}
	return l
}

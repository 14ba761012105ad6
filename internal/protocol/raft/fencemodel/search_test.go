package fencemodel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/explore"
)

// run searches for what is wanted: how the judge's words begin, or "" for nothing in all states there are.
func run(t *testing.T, m *model, limit int, want string) {
	t.Helper()
	s := explore.Space[state, step]{Beginning: m.beginning(), Each: m.each, Describe: m.tell, Judge: m.judge,
		Normalize: m.settle, Show: m.show}
	if m.mayMirror {
		s.Mirror = m.reflect
	}
	explore.Run(t, s, limit, want)
}

// reflect swaps the two members that play the same part.
func (m *model) reflect(s *state) state {
	n := *s
	a, b := m.mirror[0], m.mirror[1]
	n.log[a], n.log[b] = n.log[b], n.log[a]
	for _, v := range []*[members]uint8{&n.term, &n.cells, &n.fence, &n.lead, &n.commit, &n.ack, &n.old} {
		v[a], v[b] = v[b], v[a]
	}
	for _, t := range []*[members][members]uint8{&n.froze, &n.resp} {
		t[a], t[b] = t[b], t[a]
		for i := range t {
			t[i][a], t[i][b] = t[i][b], t[i][a]
		}
	}
	for i := range n.log {
		m.reflectLog(&n.log[i])
	}
	m.reflectLog(&n.done)
	n.conf = m.mirrored[n.conf]
	return n
}

func (m *model) reflectLog(j *journal) {
	for i, e := range j {
		if e != 0 && kindOf(e) == change {
			j[i] = entry(change, m.mirrored[argOf(e)], termOf(e))
		}
	}
}

// tell says a step in words.
func (m *model) tell(t step) string {
	switch t.kind {
	case "elect":
		return fmt.Sprintf("%d is elected by %s", t.a, who(uint8(t.b)))
	case "accept":
		return fmt.Sprintf("owner %d accepts; now %s hold it too", t.a, who(uint8(t.b)))
	case "append", "fence":
		return fmt.Sprintf("%s %d→%d", t.kind, t.a, t.b)
	case "signal":
		return fmt.Sprintf("%d signals up to %d", t.a, t.b)
	case "config":
		c := m.configs[t.b]
		return fmt.Sprintf("%d appends configuration %s%s", t.a, who(c.voters),
			strings.Repeat("+"+who(c.outgoing), min(1, int(c.outgoing))))
	case "generation", "renew":
		return fmt.Sprintf("%d appends generation %d (%s)", t.a, t.b, t.kind)
	case "lane":
		return fmt.Sprintf("%d holds %d more and acks", t.a, t.b)
	case "late":
		return fmt.Sprintf("%d holds one more and acks, then fence %d→%d", t.b, t.a, t.b)
	case "open":
		return fmt.Sprintf("%d opens the lane again", t.a)
	case "write":
		return fmt.Sprintf("owner %d holds one more", t.a)
	}
	return fmt.Sprintf("%d: %s", t.a, t.kind)
}

func who(mask uint8) string {
	out := ""
	for i := range members {
		if mask>>i&1 == 1 {
			out += fmt.Sprint(i + 1)
		}
	}
	return "{" + out + "}"
}

func (m *model) show(s *state) string {
	out := fmt.Sprintf("cells %v fences %v generation %d heard %d accepted %v", s.cells, s.fence, s.gen, s.heard,
		s.accepted)
	for i := range s.log {
		out += fmt.Sprintf("; log %d:", i+1)
		for _, e := range s.log[i][:s.log[i].len()] {
			out += fmt.Sprintf(" %s%d/%d", [...]string{"n", "s", "c", "g", "o"}[kindOf(e)], argOf(e), termOf(e))
		}
	}
	return out
}

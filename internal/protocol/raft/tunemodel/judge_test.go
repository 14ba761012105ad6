package tunemodel

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/explore"
)

// run searches for what is wanted: how the judge's words begin, or "" for nothing in all states there are.
func run(t *testing.T, c *model, limit int, want string) {
	t.Helper()
	explore.Run(t, explore.Space[state, step]{Beginning: c.beginning(), Each: c.each, Describe: tell, Judge: c.judge,
		Normalize: c.settle, Mirror: mirror, Show: c.show}, limit, want)
}

// judge: what is wrong with a state. An election is a write too, for the same quorum could have decided one.
func (c *model) judge(s *state) string {
	for i := range s.m {
		if m := &s.m[i]; m.term < s.elected && c.leased(m, i) {
			return "a leader reads by its lease, and another was elected"
		}
	}
	for i := range s.m {
		for j := range i {
			a, b := &s.m[i], &s.m[j]
			for k := range min(a.commit, b.commit) {
				if a.log[k] != b.log[k] {
					return "two members have other entries"
				}
			}
		}
	}
	return ""
}

// settle leaves out what cannot matter any more: how long ago a promise or a confirmation was over.
func (c *model) settle(s *state) bool {
	long := int8(0)
	for _, p := range c.profiles {
		long = max(long, p.timeout)
	}
	for i := range s.m {
		m := &s.m[i]
		if m.heard+long <= 0 {
			m.heard = never
		}
		for p := range m.confirmed {
			if m.leads && m.confirmed[p]+long <= 0 {
				m.confirmed[p] = never
			}
		}
		if m.leads {
			m.heard = 0
			m.match[i], m.confirmed[i] = 0, never
		}
	}
	return true
}

// mirror exchanges members 1 and 2.
func mirror(s *state) state {
	n := *s
	n.m[1], n.m[2] = n.m[2], n.m[1]
	for i := range n.m {
		m := &n.m[i]
		m.match[1], m.match[2] = m.match[2], m.match[1]
		m.confirmed[1], m.confirmed[2] = m.confirmed[2], m.confirmed[1]
	}
	return n
}

func (c *model) show(s *state) (text string) {
	for i := range s.m {
		m := &s.m[i]
		text += fmt.Sprintf("%d: term %d, leads %t, heard %d, commit %d, base %d of", i, m.term, m.leads, m.heard, m.commit,
			m.base)
		for _, e := range m.log[:m.last] {
			text += fmt.Sprintf(" %d", e.term())
			if e.profile() > 0 {
				text += fmt.Sprintf("(profile %d)", e.profile())
			}
		}
		text += "; "
	}
	return text
}

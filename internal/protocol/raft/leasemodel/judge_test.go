package leasemodel

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/braidlog/braid/internal/explore"
)

// run searches for what is wanted: how the judge's words begin, or "" for nothing in all states there are.
func run(t *testing.T, c *model, limit int, want string) {
	t.Helper()
	s := explore.Space[state, step]{Beginning: c.beginning(), Each: c.each, Describe: tell, Judge: c.judge,
		Normalize: c.settle, Show: show}
	if c.voters == all && c.later == all {
		s.Mirror = c.mirror
	}
	explore.Run(t, s, limit, want)
}

// judge: what is wrong with a state. An election is a write too, for the same quorum could have decided one.
func (c *model) judge(s *state) string {
	if s.missed {
		return "a read by index misses what was decided when it was asked for"
	}
	for i := range s.m {
		if m := &s.m[i]; m.commit < s.acked && c.leased(m, i) {
			return "a leader reads by its lease, and misses what was decided"
		}
	}
	for i := range s.m {
		for j := range i {
			n := min(s.m[i].commit, s.m[j].commit)
			if !slices.Equal(s.m[i].log[:n], s.m[j].log[:n]) {
				return "two members have other entries"
			}
		}
	}
	return ""
}

// settle leaves out what cannot matter any more: how long ago a promise or a confirmation was over, messages that no
// one heeds, and the order of messages where it says nothing.
func (c *model) settle(s *state) bool {
	for i := range s.m {
		m := &s.m[i]
		m.heard = max(m.heard, -timeout)
		for p := range m.confirmed {
			if m.role == leader && m.confirmed[p]+timeout+1 <= 0 {
				m.confirmed[p] = never
			}
		}
	}
	for i := range s.net {
		x := &s.net[i]
		if x.dated() {
			x.at = max(x.at, -timeout-1)
		}
		if s.idle(x) {
			*x = message{}
		}
	}
	c.sort(s)
	return true
}

// idle reports whether whoever gets the message does nothing.
func (s *state) idle(x *message) bool {
	if x.kind == 0 {
		return false
	}
	m := &s.m[x.to]
	switch {
	case x.refused:
		return x.term <= m.term
	case x.kind == appResp:
		return x.term < m.term || m.role != leader && x.term == m.term
	case x.kind == timeoutNow:
		return x.term < m.term || x.term == m.term && m.role != follower
	case x.kind == voteResp:
		return x.term < m.term || x.term == m.term && m.role != candidate
	case x.kind == preVoteResp:
		return x.term <= m.term
	}
	return false
}

// sort brings messages into an order: that of their links, and where these keep none, any that is always the same.
// There a message is in progress once.
func (c *model) sort(s *state) {
	slices.SortStableFunc(s.net[:], func(a, b message) int {
		if a.kind == 0 || b.kind == 0 {
			return cmp.Compare(min(b.kind, 1), min(a.kind, 1))
		}
		if k := cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)); k != 0 || c.ordered {
			return k
		}
		return cmp.Compare(a.number(), b.number())
	})
	if c.ordered {
		return
	}
	kept := slices.Compact(s.net[:])
	clear(s.net[len(kept):])
}

// number tells messages of a link apart.
func (x *message) number() (n uint64) {
	for _, v := range [...]uint8{x.kind, x.term, x.index, x.extra, uint8(x.at),
		bit(x.refused) | bit(x.forced)<<1 | bit(x.round)<<2} {
		n = n<<8 | uint64(v)
	}
	return n
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// mirror exchanges members 1 and 2.
func (c *model) mirror(s *state) state {
	n, other, who := *s, [members]uint8{0, 2, 1}, [members + 1]uint8{0, 1, 3, 2}
	n.m[1], n.m[2] = n.m[2], n.m[1]
	swap := func(set uint8) uint8 { return set&1 | set&2<<1 | set&4>>1 }
	for i := range n.m {
		m := &n.m[i]
		m.vote, m.lead = who[m.vote], who[m.lead]
		m.ballots, m.round = swap(m.ballots), swap(m.round)
		m.confirmed[1], m.confirmed[2] = m.confirmed[2], m.confirmed[1]
		m.match[1], m.match[2] = m.match[2], m.match[1]
	}
	for i := range n.net {
		if x := &n.net[i]; x.kind != 0 {
			x.from, x.to = other[x.from], other[x.to]
		}
	}
	n.read.by = other[n.read.by]
	c.sort(&n)
	return n
}

func show(s *state) (text string) {
	for i := range s.m {
		m := &s.m[i]
		text += fmt.Sprintf("%d: term %d, %s, commit %d of %v; ", i, m.term,
			[...]string{"follower", "precandidate", "candidate", "leader"}[m.role], m.commit, m.log[:m.last])
	}
	return fmt.Sprintf("%sdecided is %d", text, s.acked)
}

package codedmodel

import (
	"bytes"
	"cmp"
	"fmt"
)

// judge says what is wrong; "" nothing.
func (m *model) judge(s *cluster) string {
	switch s.wrong {
	case cutDecided:
		return "cut: what is committed"
	case decidedTwice:
		return "two entries are committed at one index"
	case cutBeforeConfig:
		return "cut: entries before a configuration (C8)"
	}
	voters, _ := m.newest(&s.done, s.decided)
	for at := range s.decided {
		e := s.done[at]
		if kindOf(e) == body && !m.outlasts(voters, func(i int) uint8 { return s.held(i, at, e) }) {
			return fmt.Sprintf("lost: the body at %d, among %04b (C1)", at+1, voters)
		}
	}
	return ""
}

// arrange gives members 1 to 3, which play the same part, an order.
func arrange(s *cluster) bool {
	for _, pair := range [...][2]int{{0, 1}, {1, 2}, {0, 1}} {
		if a, b := pair[0], pair[1]; s.compare(a, b) < 0 {
			s.swap(a, b)
		}
	}
	return true
}

// compare compares all that concerns two members.
func (s *cluster) compare(a, b int) int {
	x, y := &s.m[a], &s.m[b]
	if *x != *y {
		return cmp.Or(cmp.Compare(x.term, y.term), cmp.Compare(x.last, y.last), cmp.Compare(x.known, y.known),
			cmp.Compare(x.base, y.base),
			cmp.Compare(x.synced, y.synced), bytes.Compare(x.log[:], y.log[:]), bytes.Compare(x.holds[:], y.holds[:]))
	}
	for t := range s.t {
		r := &s.t[t]
		if p, q := &r.heard[a], &r.heard[b]; *p != *q {
			return cmp.Or(cmp.Compare(p.here, q.here), cmp.Compare(p.match, q.match), cmp.Compare(p.known, q.known),
				cmp.Compare(p.lacks, q.lacks), cmp.Compare(p.copies, q.copies), bytes.Compare(p.holds[:], q.holds[:]))
		}
		switch {
		case r.phase == unborn:
		case int(r.by) == a:
			return 1
		case int(r.by) == b:
			return -1
		}
	}
	return 0
}

func (s *cluster) swap(a, b int) {
	s.m[a], s.m[b] = s.m[b], s.m[a]
	for t := range s.t {
		r := &s.t[t]
		r.heard[a], r.heard[b] = r.heard[b], r.heard[a]
		switch {
		case r.phase == unborn:
		case int(r.by) == a:
			r.by = uint8(b)
		case int(r.by) == b:
			r.by = uint8(a)
		}
	}
}

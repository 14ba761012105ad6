package merged

import "fmt"

// judge describes what is wrong; "": nothing.
func (m *model) judge(s *cluster) string {
	if s.stale {
		return "P4: a read misses an acknowledged write"
	}
	now := m.truth(s)
	if s.commit[behind] > 0 && (!now.sealed || m.beginsAtSeal && !m.complete(s, &now)) {
		return "P2: something is decided behind p, and not all up to p"
	}
	if !now.sealed {
		return ""
	}
	voters := now.seal.set()
	for left := uint8(1); left < 1<<members; left++ {
		if left&^voters == 0 && count(left) >= count(voters)/2+1 {
			if wrong := m.judgeLeft(s, left, &now); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// complete reports whether the round of the seal is decided in both instances.
func (m *model) complete(s *cluster, now *view) bool {
	right := *m
	right.beginsAtSeal = false
	return right.truth(s).sealed && now.sealed
}

// judgeLeft: the members that are left of the new order's voters must have all up to p, and be able to decide.
func (m *model) judgeLeft(s *cluster, left uint8, now *view) string {
	for in := range 2 {
		have := uint8(0)
		for x := range members {
			if has(left, x) {
				have = max(have, s.match[in][x])
			}
		}
		if have < now.at[in] {
			return fmt.Sprintf("P3: %04b have %d of %d entries of instance %d", left, have, now.at[in], in)
		}
		of, _ := m.newest(s, in, s.last[in])
		if left&s.begun == 0 && count(left&of.set()) < m.quorum(in, of.set()) && m.decides == 0 {
			return fmt.Sprintf("P6: %04b cannot decide in instance %d", left, in)
		}
	}
	for b := range s.bodies {
		in, at := s.place(b)
		if has(now.bodies, int(b)) && s.whole[b]&left == 0 && count(s.holders(in, at)&left) < m.rows {
			return fmt.Sprintf("P3: %04b cannot read body %d", left, b)
		}
	}
	return ""
}

package reshapemodel

import "fmt"

// judge says what is wrong; "" nothing. No one knows as much as it does: what is committed counts, whoever knows that.
func (m *model) judge(s *cluster) string {
	now := m.weave(s, s.commit)
	of := [2]uint8{}
	for in := range of {
		of[in], _ = m.newest(s, in, s.commit[in])
	}
	for b := range m.bodies {
		if s.in[b] == 0 {
			continue
		}
		in, at := s.place(b)
		voters := of[in]
		if in == second && now.alone {
			voters = of[first]
		}
		void := in == second && now.alone && at > now.end
		if at <= s.commit[in] && !void && !m.durable(s, b, voters, true) {
			return fmt.Sprintf("lost: body %d with k=%d is held as %v, voters are %04b", b+1, m.k, s.holds[b], voters)
		}
	}
	if now.alone && !m.bodiesOnly {
		return m.stranded(s, of)
	}
	return ""
}

// stranded says which majority of the first instance's voters cannot come to the state, if the others are lost: none of
// them has it, and they cannot lead the retired instance to its end.
func (m *model) stranded(s *cluster, of [2]uint8) string {
	all := m.views(s)
	for left := uint8(1); left < 1<<members; left++ {
		if left&^of[first] != 0 || size(left) < majority(size(of[first])) ||
			size(left&of[second]) >= majority(size(of[second])) {
			continue
		}
		some := false
		for i := range all {
			some = some || has(left, i) && all[i].alone
		}
		if !some {
			return fmt.Sprintf("stranded: %04b of %04b", left, of[first])
		}
	}
	return ""
}

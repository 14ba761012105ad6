package reshapemodel

// view is how far the merged log comes with what is known of the instances' logs.
type view struct {
	at      [2]uint8 // entries that are in the merged log
	voters  [2]uint8 // by the configurations among them
	pending bool     // a reshape is among them, and its round is not over
	alone   bool     // the second instance is retired,
	end     uint8    // with a given number of entries
}

// weave makes one log of what is known of two: a round has a slot of each instance in turn.
func (m *model) weave(s *cluster, known [2]uint8) view {
	v := view{voters: [2]uint8{m.voters, m.voters}}
	for in := first; ; {
		if in == first && v.pending {
			v.pending, v.alone, v.end = false, true, v.at[second]
		}
		if !m.fill(s, in, known[in], &v) {
			return v
		}
		if !v.alone {
			in = 1 - in
		}
	}
}

// fill takes entries up to one that fills the instance's slot. It reports whether there is one.
func (m *model) fill(s *cluster, in int, known uint8, v *view) bool {
	for v.at[in] < known {
		e := s.log[in][v.at[in]]
		v.at[in]++
		switch e.kind() {
		case config:
			v.voters[in] = e.arg()
			continue
		case reshape:
			v.pending = !v.alone
		}
		return true
	}
	return false
}

// views are those of all members.
func (m *model) views(s *cluster) (all [members]view) {
	for i := range all {
		all[i] = m.weave(s, [2]uint8{min(s.match[first][i], s.commit[first]), min(s.match[second][i], s.commit[second])})
	}
	return all
}

// knows reports whether a member knows of a body: it has its entry, or the state refers to it.
func (s *cluster) knows(i, body int, v *view) bool {
	in, at := s.place(body)
	if in == second && v.alone {
		return at <= v.end
	}
	return s.match[in][i] >= at
}

// missing reports whether a member knows that it has nothing of a body of an instance.
func (m *model) missing(s *cluster, i, in int, v *view) bool {
	for b := range m.bodies {
		if int(s.in[b]) == in+1 && s.holds[b][i] == none && s.knows(i, b, v) {
			return true
		}
	}
	return false
}

// alive reports whether a member knows of a body of an instance.
func (m *model) alive(s *cluster, i, in int, v *view) bool {
	for b := range m.bodies {
		if int(s.in[b]) == in+1 && s.knows(i, b, v) {
			return true
		}
	}
	return false
}

// lacking is what a member says to an instance's leader.
func (m *model) lacking(s *cluster, i, in int, v *view) bool {
	return m.missing(s, i, in, v) || in == first && v.alone && !m.lacksNothing && m.missing(s, i, second, v)
}

// copied reports whether a member holds all bodies whole for which an instance is responsible.
func (m *model) copied(s *cluster, i, in int, v *view) bool {
	for b := range m.bodies {
		mine := int(s.in[b]) == in+1 || in == first && v.alone && s.in[b] == second+1
		if mine && s.holds[b][i] != whole {
			return false
		}
	}
	return true
}

// shaped is the last reshape in the first instance's log; 0: there is none.
func (s *cluster) shaped() (at uint8) {
	for i, e := range s.log[first][:s.last[first]] {
		if e.kind() == reshape {
			at = uint8(i) + 1
		}
	}
	return at
}

// caughtUp reports whether the last reshape is active as far as a member has come.
func (s *cluster) caughtUp(v *view) bool {
	at := v.at[first]
	if v.pending {
		at--
	}
	return at >= s.shaped()
}

// keepsBodies reports whether the leader of an instance finds bodies durable with the next voters: by rows, or
// because whole copies are on every majority.
func (m *model) keepsBodies(s *cluster, all *[members]view, leader, in int, next uint8) bool {
	l := &all[leader]
	if in == first && !m.leaderBehind && !s.caughtUp(l) {
		return false
	}
	if !m.alive(s, leader, in, l) && (in == second || !l.alone || m.deaf || !m.alive(s, leader, second, l)) {
		return true
	}
	holders, copies := 0, 0
	for i := range members {
		v := &all[i]
		switch {
		case !has(next, i), !m.unmatched && s.match[in][i] < s.commit[in]:
			continue
		case in == first && !m.countBehind && !s.caughtUp(v), m.lacking(s, i, in, v):
			continue
		}
		if holders++; m.copied(s, i, in, v) {
			copies++
		}
	}
	n := size(next)
	spare := n - majority(n)
	rows := min(majority(n), holders-spare)
	return rows >= 1 && (m.k <= rows || copies > spare)
}

// keepsState reports whether a majority of the next voters has the state, and every new one.
func (m *model) keepsState(s *cluster, all *[members]view, now, next uint8) bool {
	have := 0
	for i := range members {
		switch {
		case !has(next, i):
		case s.caughtUp(&all[i]):
			have++
		case !has(now, i):
			return m.stateless
		}
	}
	return have >= majority(size(next)) || m.stateless
}

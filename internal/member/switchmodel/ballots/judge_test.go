package ballots

// judge describes what is wrong; "": nothing.
func (m *model) judge(s *cluster) string {
	return [...]string{"", "P1: a member begins at another place than the log gives", "P2: two values in a slot",
		"P4: a read misses an acknowledged write"}[s.wrong]
}

// normalize finds two values in a slot, and removes what has no effect any more: promises in ballots that have ended,
// and in a slot that is decided all but that.
func (m *model) normalize(s *cluster) bool {
	for i := range s.slots {
		s.settle(&s.slots[i], !m.dropsCells)
	}
	s.settle(&s.next, false)
	for i := range s.segments {
		s.segments[i].forget()
	}
	s.heir.forget()
	return s.wrong == right
}

func (s *cluster) settle(this *slot, only bool) {
	v, two := this.decided()
	if two {
		s.wrong = twoValues
	}
	if v != 0 && only {
		*this = slot{}
		this.value[0], this.votes[0] = v, 1<<members-1
	}
}

func (g *segment) forget() {
	for b := range ballots {
		if !has(g.active, b) {
			g.promises[b] = 0
		}
	}
}

package fencemodel

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// fingerprints is a set of hashes. Two of n states have the same one with a probability of n²/2⁶⁵.
type fingerprints struct {
	slots []uint64
	n     int
}

func (f *fingerprints) add(h uint64) bool {
	if 10*f.n >= 6*len(f.slots) {
		old := f.slots
		f.slots, f.n = make([]uint64, max(1<<16, 2*len(old))), 0
		for _, h := range old {
			if h != 0 {
				f.add(h)
			}
		}
	}
	h = max(h, 1)
	mask := uint64(len(f.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch f.slots[i] {
		case h:
			return false
		case 0:
			f.slots[i] = h
			f.n++
			return true
		}
	}
}

// origin says how a state was reached first: which successor of which state.
type origin struct {
	parent uint32
	branch uint16
}

type search struct {
	m       *model
	seed    maphash.Seed
	seen    fingerprints
	origins []origin
	depth   int
}

// result is what a search found.
type result struct {
	states int
	depth  int
	wrong  string
	trace  []string
	// whole: every reachable state was seen.
	whole bool
}

// explore visits all reachable states, the nearest first, until one is wrong.
func explore(m *model, limit int) result {
	s := &search{m: m, seed: maphash.MakeSeed()}
	first := m.beginning()
	s.origins = append(s.origins, origin{})
	level, numbers := []state{first}, []uint32{0}
	for len(level) > 0 && len(s.origins) <= limit {
		var next []state
		var ids []uint32
		for i := range level {
			wrong, at := "", 0
			branch := uint16(0)
			m.each(&level[i], func(_ step, n *state) {
				branch++
				if wrong != "" {
					return
				}
				goesOn := m.settle(n)
				if !s.seen.add(s.hash(n)) {
					return
				}
				s.origins = append(s.origins, origin{numbers[i], branch})
				if goesOn {
					ids = append(ids, uint32(len(s.origins)-1))
					next = append(next, *n)
				}
				if wrong = m.judge(n); wrong != "" {
					at = len(s.origins) - 1
				}
			})
			if wrong != "" {
				return result{len(s.origins), s.depth + 1, wrong, s.trace(&first, at), false}
			}
		}
		level, numbers = next, ids
		s.depth++
	}
	return result{len(s.origins), s.depth, "", nil, len(level) == 0}
}

// hash is the same for a state and its mirror image.
func (s *search) hash(n *state) uint64 {
	h := maphash.Comparable(s.seed, *n)
	if s.m.mayMirror {
		mirror := s.m.reflect(n)
		h = min(h, maphash.Comparable(s.seed, mirror))
	}
	return h
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

// trace replays the way to a state.
func (s *search) trace(first *state, at int) []string {
	var branches []uint16
	for at != 0 {
		branches = append(branches, s.origins[at].branch)
		at = int(s.origins[at].parent)
	}
	now := *first
	var out []string
	for i := len(branches) - 1; i >= 0; i-- {
		branch, found := uint16(0), now
		s.m.each(&now, func(t step, n *state) {
			if branch++; branch == branches[i] {
				out = append(out, s.m.tell(t))
				found = *n
				s.m.settle(&found)
			}
		})
		now = found
	}
	return append(out, s.m.show(&now))
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
		return fmt.Sprintf("%d appends configuration %s%s", t.a, who(c.voters), strings.Repeat("+"+who(c.outgoing), min(1, int(c.outgoing))))
	case "generation", "renew":
		return fmt.Sprintf("%d appends generation %d (%s)", t.a, t.b, t.kind)
	case "lane":
		return fmt.Sprintf("%d holds %d more and acks", t.a, t.b)
	case "late":
		return fmt.Sprintf("%d holds one more and acks, then fence %d→%d", t.b, t.a, t.b)
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
	out := fmt.Sprintf("cells %v fences %v generation %d accepted %v", s.cells, s.fence, s.gen, s.accepted)
	for i := range s.log {
		out += fmt.Sprintf("; log %d:", i+1)
		for _, e := range s.log[i][:s.log[i].len()] {
			out += fmt.Sprintf(" %s%d/%d", [...]string{"n", "s", "c", "g"}[kindOf(e)], argOf(e), termOf(e))
		}
	}
	return out
}

package ballots

import "fmt"

type step struct {
	verb    string
	x, slot int
	ballot  int
	v       value
}

// behindP is the slot's number of the new order in steps.
const behindP = slots

func (t step) String() string {
	out := fmt.Sprintf("%s: member %d, slot %d, ballot %d", t.verb, t.x, t.slot+1, t.ballot)
	if t.v != 0 {
		out += fmt.Sprintf(", %s %d", [...]string{"", "empty", "put", "change", "seal"}[t.v>>4], t.v.arg())
	}
	return out
}

type successor func(step, *cluster)

func (m *model) each(s *cluster, yield func(step, *cluster)) {
	if s.wrong != right {
		return
	}
	for i := range m.slots {
		m.slot(s, int(i), yield)
	}
	m.slot(s, behindP, yield)
	for i := range s.segments {
		if m.epoch > 1 || i == 0 {
			m.opening(s, i, yield)
		}
	}
	m.opening(s, len(s.segments), yield)
	for x := range members {
		m.begins(s, x, yield)
		m.failing(s, x, yield)
	}
	m.reading(s, yield)
}

// of is a slot and its segment, in either order.
func (m *model) of(s *cluster, at int) (*slot, *segment, int) {
	if at == behindP {
		return &s.next, &s.heir, int(s.m) - 1
	}
	seg := m.segment(uint8(at))
	return &s.slots[at], &s.segments[seg], seg
}

// takesPart: a member that has begun takes part in the new order only, and in that with a durable first record.
func (m *model) takesPart(s *cluster, x int, old bool) bool {
	if old {
		return !has(s.begun, x) || m.oldAnswers || m.dropsCells
	}
	return has(s.begun, x)
}

// slot: proposals and votes.
func (m *model) slot(s *cluster, at int, yield successor) {
	this, seg, first := m.of(s, at)
	if at == behindP && s.m == 0 {
		return
	}
	for b := range this.value {
		x := proposer(first, b)
		speaks := at != behindP || has(s.rec, x) || m.bornTwice
		if has(seg.active, b) && this.value[b] == 0 && speaks && m.takesPart(s, x, at != behindP) {
			for _, v := range m.choices(s, at, b, x) {
				n := *s
				to, _, _ := m.of(&n, at)
				to.value[b] = v
				yield(step{"propose", x, at, b, v}, &n)
			}
		}
		if this.value[b] == 0 {
			continue
		}
		for x := range members {
			if has(this.votes[b], x) || int(seg.promised[x]) > level(b) || !m.takesPart(s, x, at != behindP) {
				continue
			}
			n := *s
			to, toSeg, _ := m.of(&n, at)
			to.votes[b] |= 1 << x
			toSeg.promised[x] = uint8(level(b))
			n.write(x, at != behindP)
			yield(step{"vote", x, at, b, this.value[b]}, &n)
		}
	}
}

// write makes durable what a member of the new order has.
func (s *cluster) write(x int, old bool) {
	if !old {
		s.rec |= 1 << x
	}
}

// choices are what the proposer of a ballot may propose in a slot.
func (m *model) choices(s *cluster, at, b, x int) (out []value) {
	this, seg, _ := m.of(s, at)
	if level(b) > 0 {
		if !majority(seg.promises[b]) {
			return nil
		}
		if v := m.forced(s, this, seg.promises[b], b, at != behindP); v != 0 {
			return []value{v}
		}
		if at != behindP {
			return []value{empty}
		}
	}
	if at == behindP || m.puts {
		out = append(out, value(put|b))
	}
	if at == behindP {
		return out
	}
	out = append(out, empty)
	if m.changes {
		out = append(out, change)
	}
	for k := range m.seals {
		out = append(out, value(seal|(x+k)%members))
	}
	return out
}

// forced is the value of the highest ballot that a member which promised had voted in.
func (m *model) forced(s *cluster, this *slot, promises uint8, below int, old bool) value {
	if old && m.dropsCells {
		promises &^= s.dropped
	}
	for b := below - 1; b >= 0; b-- {
		if this.votes[b]&promises != 0 {
			return this.value[b]
		}
	}
	if this.votes[again]&promises != 0 {
		return this.value[again]
	}
	return 0
}

// opening: a member opens its ballot in a segment, and others promise. seg 2 is the new order's.
func (m *model) opening(s *cluster, seg int, yield successor) {
	old := seg < len(s.segments)
	of := func(s *cluster) *segment {
		if old {
			return &s.segments[seg]
		}
		return &s.heir
	}
	if !old && s.m == 0 {
		return
	}
	this := of(s)
	for b := 1; b < ballots; b++ {
		x := b
		if !has(this.opened, b) && s.opens < m.opens && m.takesPart(s, x, old) && int(this.promised[x]) < b {
			n := *s
			n.opens++
			to := of(&n)
			to.opened |= 1 << b
			to.active |= 1 << b
			n.write(x, old)
			yield(step{"open", x, seg, b, 0}, &n)
		}
		if !has(this.opened, b) {
			continue
		}
		for x := range members {
			if has(this.promises[b], x) || int(this.promised[x]) >= b || !m.takesPart(s, x, old) {
				continue
			}
			n := *s
			to := of(&n)
			to.promised[x] = uint8(b)
			to.promises[b] |= 1 << x
			n.write(x, old)
			yield(step{"promise", x, seg, b, 0}, &n)
		}
	}
}

// begins: a member begins when it knows all up to p. It may know a decision as soon as there is one, and its first
// record is written later.
func (m *model) begins(s *cluster, x int, yield successor) {
	if p, first := m.sealed(s, x); p > 0 && !has(s.begun, x) {
		n := *s
		right := *m
		right.variant = variant{}
		if at, of := right.sealed(s, x); at != p || of != first {
			n.wrong = otherPlace
		}
		n.begun |= 1 << x
		n.m = first
		if int(first) == x+1 {
			n.heir.lead()
		}
		yield(step{"begin", x, int(p) - 1, 0, 0}, &n)
	}
	if has(s.begun, x) && !has(s.rec, x) {
		n := *s
		n.rec |= 1 << x
		yield(step{"record", x, behindP, 0, 0}, &n)
	}
	if m.dropsCells && has(s.rec, x) && !has(s.dropped, x) {
		n := *s
		n.dropped |= 1 << x
		for i := range n.segments {
			n.segments[i].promised[x] = 0
		}
		yield(step{"drop", x, behindP, 0, 0}, &n)
	}
}

// lead gives the first leader its ballot; after another incarnation had it, it is the same ballot with other proposals.
func (g *segment) lead() {
	if has(g.opened, 0) {
		g.opened |= 1 << again
		g.active |= 1 << again
		return
	}
	g.opened |= 1
	g.active |= 1
}

// failing: a crash leaves votes, promises and first records.
func (m *model) failing(s *cluster, x int, yield successor) {
	if s.crashes == m.crashes {
		return
	}
	n := *s
	n.crashes++
	for i := range n.segments {
		n.segments[i].end(i, x)
	}
	leads := m.leadsAgain && has(s.rec, x) && int(s.m) == x+1
	if n.m > 0 {
		n.heir.end(int(n.m)-1, x)
	}
	if leads {
		n.heir.lead()
	}
	n.begun &= n.rec | ^uint8(1<<x)
	yield(step{"crash", x, behindP, 0, 0}, &n)
}

// end ends the ballots of a member.
func (g *segment) end(seg, x int) {
	for b := range ballots + 1 {
		if proposer(seg, b) == x {
			g.active &^= 1 << b
		}
	}
}

// reading: a proposer of the old order reads what it knows, when a majority confirms that it is in no higher ballot,
// and has not begun.
func (m *model) reading(s *cluster, yield successor) {
	if v, _ := s.next.decided(); v == 0 {
		return
	}
	for b := range ballots {
		x := proposer(0, b)
		if !has(s.segments[0].active, b) || has(s.begun, x) {
			continue
		}
		confirm := uint8(0)
		for y := range members {
			if int(s.segments[0].promised[y]) <= b && (!has(s.begun, y) || m.leasedReads) {
				confirm |= 1 << y
			}
		}
		if majority(confirm) {
			n := *s
			n.wrong = staleRead
			yield(step{"read", x, 0, b, 0}, &n)
		}
	}
}

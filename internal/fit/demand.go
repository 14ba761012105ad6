package fit

// What a member has that a command takes: its links to the others together, its disk, the loops of its instances, its
// apply loop, and its cores.
const (
	link = iota
	disk
	loop
	apply
	cores
	kinds
)

// kindNames are what people read.
var kindNames = [kinds]string{"link", "disk", "loop", "apply loop", "CPU"}

// demand is what a command takes of each member's resources, by the member that is asked, and then by kind and member:
// bytes out of the links, bytes on the disk, and work of loops and cores, where 1 is a leader's with raft.
type demand [][]float64

// at is the place of a member's resource in a demand.
func (m *model) at(kind, member int) int { return kind*len(m.members) + member }

// demand computes what commands take under a shape and a leader.
func (m *model) demand(s *shape, leader int) demand {
	d := make(demand, len(m.members))
	for i := range m.members {
		d[i] = make([]float64, kinds*len(m.members))
		if m.members[i].rate <= 0 {
			continue
		}
		lane := 0.0
		if s.lanes && i != leader {
			lane = m.members[i].blind
		}
		m.sent(s, d[i], leader, i, lane)
		m.written(s, d[i], leader, i, lane)
		m.worked(s, d[i], leader, lane)
	}
	return d
}

// sizes are the mean bytes of a command of a member without its body, and of its body.
func (m *model) sizes(i int) (small, body float64) {
	o := &m.members[i]
	return share(o.bytes-o.body, o.rate), share(o.body, o.rate)
}

// cut is into how many fragments bodies are cut now.
func (m *model) cut(s *shape) float64 { return float64(s.fragments(len(m.members), m.live())) }

// sent adds what a command of member i takes of links. Who leads sends it to all others, bodies cut; other members send
// it whole to a leader, or by lanes to all.
func (m *model) sent(s *shape, d []float64, leader, i int, lane float64) {
	small, body := m.sizes(i)
	others := float64(max(0, m.live()-1))
	all := others * (small + body/m.cut(s))
	by := m.carriers(s, leader, i)
	if len(by) == 1 && by[0] == i {
		d[m.at(link, i)] += all
		return
	}
	for _, j := range by {
		d[m.at(link, j)] += (1 - lane) * all / float64(len(by))
	}
	d[m.at(link, i)] += (1 - lane) * (small + body)
	d[m.at(link, i)] += lane * (others*small + (others-1)*body/m.cut(s) + body) // the leader gets bodies whole
}

// carriers are the members that send a command which comes to member i to the others: itself, the leader, or those
// that lead where it does not.
func (m *model) carriers(s *shape, leader, i int) (by []int) {
	if s.leads(i, leader) {
		return []int{i}
	}
	for j := range m.members {
		if s.leads(j, leader) && m.members[j].Present {
			by = append(by, j)
		}
	}
	return by
}

// written adds what a command of member i takes of disks: who leads it keeps bodies whole, others rows of them.
func (m *model) written(s *shape, d []float64, leader, i int, lane float64) {
	small, body := m.sizes(i)
	times := 1 + lane*(twiceWritten-1)
	if s.protocol == multiPaxos {
		times = twiceWritten
	}
	for j := range m.members {
		kept := body / m.cut(s)
		if s.leads(j, leader) && (j == i || s.led()) {
			kept = body
		}
		d[m.at(disk, j)] += times * (small + kept)
	}
}

// worked adds what a command, a part of it in a lane, takes of loops and cores.
func (m *model) worked(s *shape, d []float64, leader int, lane float64) {
	leaders := 0.0
	for j := range m.members {
		if s.leads(j, leader) {
			leaders++
		}
	}
	loops := float64(s.instances)
	for j := range m.members {
		work := followerWork + lane*laneCosts*followerWork
		switch {
		case s.protocol == iss:
			work = issWork
		case s.spread && s.leads(j, leader):
			work = followerWork + (1-followerWork)/leaders
		case !s.spread && j == leader:
			work = 1 - lane*laneSpares
		}
		if s.protocol == multiPaxos {
			work *= paxosWork
		}
		d[m.at(cores, j)] += work * (1 + instanceWork*(loops-1))
		d[m.at(loop, j)] += work / loops
		d[m.at(apply, j)]++
	}
}

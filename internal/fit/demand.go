package fit

// demand is what a command takes of each member's resources, on average over all commands: bytes out of its links,
// bytes on its disk, and work of its loop, of the apply loop and of its cores, where 1 is a leader's of raft.
type demand struct {
	link, disk, loop, apply, cpu []float64
}

// demand computes that for a shape and a leader. shares are the parts that members have of all commands.
func (m *model) demand(s *shape, leader int, shares []float64) *demand {
	n := len(m.members)
	one := func() []float64 { return make([]float64, n) }
	d := &demand{link: one(), disk: one(), loop: one(), apply: one(), cpu: one()}
	k := float64(s.fragments(n, m.live()))
	others := float64(max(0, m.live()-1))
	for i := range m.members {
		o := &m.members[i]
		if shares[i] == 0 {
			continue
		}
		small, body := share(o.bytes-o.body, o.rate)*shares[i], share(o.body, o.rate)*shares[i]
		send := func(from int, part float64) { // to all others, bodies cut
			d.link[from] += part * others * (small + body/k)
		}
		lane := 0.0
		if s.lanes && i != leader {
			lane = o.blind
		}
		switch by := m.carriers(s, leader, i); {
		case len(by) == 1 && by[0] == i:
			send(i, 1)
		default:
			for _, j := range by {
				send(j, (1-lane)/float64(len(by)))
			}
			d.link[i] += (1 - lane) * (small + body)
			d.link[i] += lane * (others*small + (others-1)*body/k + body) // the leader gets bodies whole
		}
		m.written(s, d, leader, i, small, body/k, body, lane)
		m.worked(s, d, leader, shares[i], lane)
	}
	return d
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

// written adds what a command of member i takes of the disks: its carrier has bodies whole, others rows of them.
func (m *model) written(s *shape, d *demand, leader, i int, small, row, body, lane float64) {
	times := 1.0
	if s.protocol == multiPaxos {
		times = twiceWritten
	}
	times += lane * (twiceWritten - 1)
	for j := range m.members {
		kept := row
		if s.leads(j, leader) && (j == i || s.led()) {
			kept = body
		}
		d.disk[j] += times * (small + kept)
	}
}

// worked adds what a share of all commands, a part of them in lanes, takes of loops and cores.
func (m *model) worked(s *shape, d *demand, leader int, share, lane float64) {
	n := len(m.members)
	loops := 1.0
	if s.instances > 1 {
		loops = float64(s.instances)
	}
	leads := 0
	for j := range m.members {
		if s.leads(j, leader) {
			leads++
		}
	}
	for j := range m.members {
		work := followerWork + lane*laneCosts*followerWork
		switch {
		case s.protocol == iss:
			work = issWork
		case s.spread && s.leads(j, leader):
			work = followerWork + (1-followerWork)/float64(min(leads, n))
		case !s.spread && j == leader:
			work = 1 - lane*laneSpares
		}
		if s.protocol == multiPaxos {
			work *= paxosWork
		}
		d.cpu[j] += share * work * (1 + instanceWork*(loops-1))
		d.loop[j] += share * work / loops
		d.apply[j] += share
	}
}

package fit

// roundTrips is the limit where no resource is nearly full.
const roundTrips = "round trips"

// limits are the units of each resource, as in a demand, that it carries in a second; 0: that is not known.
type limits []float64

// known are the limits under the load, given what commands take under the active profile. learned are the bytes that
// each member's links carried when they were full.
func (m *model) known(d demand, learned []float64) limits {
	f, units := make(limits, kinds*len(m.members)), m.units(d)
	best := 0.0
	for _, bytes := range learned {
		best = max(best, bytes)
	}
	for i := range m.members {
		u := &m.members[i].used
		scaled := func(kind int, busy, from float64) {
			if s := m.at(kind, i); busy >= from {
				f[s] = units[s] / min(1, busy)
			}
		}
		burst := m.members[i].slow == "" && u.out < best/2 // links have carried twice as much
		if s := m.at(link, i); u.full() && !burst {
			if f[s] = units[s]; u.out > mostBesides*f[s] || f[s] > 1.1*u.out {
				f[s] = u.out
			}
		} else if i < len(learned) && learned[i] > 0 {
			f[s] = max(learned[i], units[s])
		}
		if u.synced >= diskBytes {
			scaled(disk, u.disk, busyDisk)
		}
		scaled(loop, u.loop, busyLoop)
		scaled(apply, u.apply, busyApply)
		scaled(cores, u.cpu, busyCPU)
	}
	m.alike(f, units)
	return f
}

// units are what all commands take of each resource in a second.
func (m *model) units(d demand) []float64 {
	sum := make([]float64, kinds*len(m.members))
	for i := range d {
		for s, each := range d[i] {
			sum[s] += m.members[i].rate * each
		}
	}
	return sum
}

// alike takes a resource that is not busy to carry as much as the best one of its kind that is, or as much as it does.
// Those of slow members say nothing about others.
func (m *model) alike(f limits, units []float64) {
	for kind := range kinds {
		most := 0.0
		for i := range m.members {
			if m.members[i].slow == "" {
				most = max(most, f[m.at(kind, i)])
			}
		}
		for i := range m.members {
			if s := m.at(kind, i); f[s] == 0 && most > 0 {
				f[s] = max(most, units[s])
			}
		}
	}
}

// full reports whether the member's links are: bytes wait that take them long, and did so in all of the last reports.
func (u *usage) full() bool {
	return u.queued >= fullQueueBytes && u.queued >= u.out*fullQueue.Seconds()
}

// limit names the busiest resource at some rates of the members, if it is nearly full.
func (m *model) limit(s *shape, leader int, d demand, rates []float64) string {
	name, most := roundTrips, nearFull
	for kind := range kinds {
		for j := range m.members {
			at, busy := m.at(kind, j), 0.0
			if m.full[at] <= 0 {
				continue
			}
			for i := range m.members {
				busy += rates[i] * d[i][at] / m.full[at]
			}
			if busy <= most {
				continue
			}
			most = busy
			switch {
			case kind == cores:
				name = kindNames[kind]
			case j == leader && s.led():
				name = "leader's " + kindNames[kind]
			default:
				name = m.members[j].called() + "'s " + kindNames[kind]
			}
		}
	}
	return name
}

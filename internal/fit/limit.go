package fit

import "math"

// known are the limits under the load, given what a command takes under the active profile. learned are the bytes that
// each member's links carried when they were full.
func (m *model) known(d *demand, learned []float64) limits {
	n := len(m.members)
	one := func() []float64 { return make([]float64, n) }
	f := limits{link: one(), disk: one(), loop: one(), apply: one(), cpu: one()}
	for i := range m.members {
		u := &m.members[i].used
		scaled := func(units, busy, from float64) float64 {
			if busy < from {
				return 0
			}
			return m.rate * units / min(1, busy)
		}
		if u.full() {
			f.link[i] = m.rate * d.link[i]
		} else if i < len(learned) && learned[i] > 0 {
			f.link[i] = max(learned[i], m.rate*d.link[i])
		}
		if u.synced >= diskBytes {
			f.disk[i] = scaled(d.disk[i], u.disk, busyDisk)
		}
		f.loop[i] = scaled(d.loop[i], u.loop, busyLoop)
		f.apply[i] = scaled(d.apply[i], u.apply, busyApply)
		f.cpu[i] = scaled(d.cpu[i], u.cpu, busyCPU)
	}
	m.alike(f.link, d.link)
	m.alike(f.disk, d.disk)
	m.alike(f.loop, d.loop)
	m.alike(f.apply, d.apply)
	m.alike(f.cpu, d.cpu)
	return f
}

// alike takes a resource that is not busy to carry as much as the best one that is, or as much as it does.
func (m *model) alike(full, units []float64) {
	most := 0.0
	for _, f := range full {
		most = max(most, f)
	}
	if most == 0 {
		return
	}
	for i, f := range full {
		if f == 0 {
			full[i] = max(most, m.rate*units[i])
		}
	}
}

// full reports whether the member's links are: bytes wait that take them long.
func (u *usage) full() bool {
	return u.queued >= fullQueueBytes && u.queued >= u.out*fullQueue.Seconds()
}

// bound is the rate above which some resource carries no more, and which one; infinite: none is known.
func (m *model) bound(s *shape, leader int, d *demand) (rate float64, limit string) {
	rate = math.Inf(1)
	for i := range m.members {
		for _, r := range []struct {
			full, units float64
			name        string
		}{
			{m.full.link[i], d.link[i], "link"}, {m.full.disk[i], d.disk[i], "disk"}, {m.full.loop[i], d.loop[i], "loop"},
			{m.full.apply[i], d.apply[i], "apply loop"}, {m.full.cpu[i], d.cpu[i], "CPU"},
		} {
			if r.full <= 0 || r.units <= 0 || r.full/r.units >= rate {
				continue
			}
			rate = r.full / r.units
			switch {
			case r.name == "CPU":
				limit = r.name
			case i == leader && s.led():
				limit = "leader's " + r.name
			default:
				limit = m.members[i].called() + "'s " + r.name
			}
		}
	}
	return rate, limit
}

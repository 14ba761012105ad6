package sim

// faultLag: a member applies nothing for a while.
var faultLag = &Fault{Name: "lag", Thinned: true}

func init() {
	faultLag.Strike = (*World).lag
	faultLag.Heal = func(m *Member) { m.lagging = 0 }
}

// lag lets a member apply nothing for a while.
func (w *World) lag(m *Member) {
	m.lagging = w.Now() + w.still(6*w.set.Election)
	w.Tracef("FAULT %s applies nothing until %.6f", m.id, m.lagging.Seconds())
}

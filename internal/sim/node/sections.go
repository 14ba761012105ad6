package node

// judgeSections checks the sections that a member's cores derived from their logs.
func judgeSections(m *Member) {
	if m.Strange() {
		return // its data does not count
	}
	cursor := m.Applier.Cursor()
	for _, s := range m.Applier.Sections() {
		m.Env.Violate(m.ID, m.Env.Court.Derived(cursor.Point(s.Instance).Index, &s))
	}
}

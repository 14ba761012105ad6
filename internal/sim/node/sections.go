package node

// judgeSections judges what a member's cores derived from their logs.
func judgeSections(m *Member) {
	if m.Strange() {
		return // what it holds counts for nothing
	}
	cursor := m.Applier.Cursor()
	for _, s := range m.Applier.Sections() {
		m.Env.Violate(m.ID, m.Env.Court.Derived(cursor.Point(s.Instance).Index, &s))
	}
}

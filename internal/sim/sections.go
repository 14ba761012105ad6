package sim

// judgeSections judges what a member's cores derived from their logs.
func (m *Member) judgeSections() {
	if m.strange() {
		return // what it holds counts for nothing
	}
	cursor := m.applier.Cursor()
	for _, s := range m.applier.Sections() {
		m.w.Violate(m.id, m.w.court.Derived(cursor.Point(s.Instance).Index, &s))
	}
}

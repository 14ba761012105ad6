package sim

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// judgeSections judges what a member's cores derived from their logs: all members that have applied
// an instance up to the same entry have derived the same.
func (m *Member) judgeSections() {
	if m.strange() {
		return // what it holds counts for nothing
	}
	for _, s := range m.applier.Sections() {
		cursor := m.applier.Cursor()
		index, j := cursor.Point(s.Instance).Index, m.w.judgesOf(s.Instance)
		if m.w.Violate(m.id, s.Valid()); m.w.set.byKey() {
			continue // at an index members have applied as much, and not the same
		}
		is := fmt.Sprintf("%s, version %d: %x", s.Name, s.Version, s.Data)
		if was := j.sections[index]; was != "" && was != is {
			m.w.Violate(m.id, fmt.Errorf("sections: up to %d%s it derives %s, another member %s", index, m.w.named(s.Instance), is, was))
		}
		if j.sections == nil {
			j.sections = map[protocol.Index]string{}
		}
		j.sections[index] = is
	}
}

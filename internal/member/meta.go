package member

import (
	"slices"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Meta is what a snapshot says besides the state machine's state: where in the log it stands, the
// membership there, and which proposals had taken effect.
type Meta struct {
	Cursor order.Cursor `json:"cursor"`
	// Command is the position of the last command that the state holds. It is before the cursor
	// where entries of the log itself or duplicates followed. It is after the cursor where a state
	// machine on disk was ahead of the log that was being replayed.
	Command protocol.Position `json:"command"`
	// Config is the first instance's membership, which is the cluster's. Others are those of the
	// other instances, which follow it, in the order of the cursor's points.
	Config   protocol.Config   `json:"config"`
	Others   []protocol.Config `json:"others,omitempty"`
	Sessions []SessionState    `json:"sessions"`
	// Sections are what the cores derived from their logs up to the cursor: at most one for each of
	// its points, in their order.
	Sections []SectionState `json:"sections,omitempty"`
}

// Base is the snapshot's place in an instance's log.
func (m *Meta) Base(instance protocol.InstanceID) protocol.Base {
	p := m.Cursor.Point(instance)
	b := protocol.Base{Index: p.Index, Term: p.Term, Config: m.Config, Round: p.Round, Section: m.section(instance)}
	for i, c := range m.Others {
		if m.Cursor.Points[i+1].Instance == instance {
			b.Config = c
		}
	}
	return b
}

// Covers reports whether the snapshot stands for an instance's entries up to index. It stands for
// all entries of an instance that is retired by then.
func (m *Meta) Covers(instance protocol.InstanceID, index protocol.Index) bool {
	for _, p := range m.Cursor.Points {
		if p.Instance == instance {
			return p.Index >= index
		}
	}
	return instance < m.Cursor.Unused()
}

// Bootstrap is the meta of a cluster's first moment. Nothing has happened in its instances, and
// these are the members. They hold the rows of coded bodies in their order.
func Bootstrap(begin order.Cursor, members []protocol.Member) Meta {
	config := protocol.Config{Members: slices.Clone(members)}
	config.Number()
	m := Meta{Cursor: begin, Config: config}
	for range begin.Points[1:] {
		m.Others = append(m.Others, config.Clone())
	}
	return m
}

// Found gives a cluster's first moment its first profile.
func (m *Meta) Found(p protocol.Profile) {
	m.Config.Profile = p
	for i := range m.Others {
		m.Others[i].Profile = p
	}
}

// AllIndexes is above all indexes.
const AllIndexes = ^protocol.Index(0)

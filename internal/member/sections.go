package member

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Derive makes the derived state of an instance at its beginning (see [protocol.Derived]), with its
// first configuration (see [protocol.Base.Config]), whose profile tells its core. It returns nil if that core derives
// nothing. nil: no core does.
type Derive func(protocol.Config) protocol.Derived

// SectionState is a section of an instance in a snapshot.
type SectionState struct {
	Instance protocol.InstanceID `json:"instance"`
	protocol.Section
}

// section is what the snapshot has of an instance; the zero Section if it has nothing.
func (m *Meta) section(instance protocol.InstanceID) protocol.Section {
	at, ok := slices.BinarySearchFunc(m.Sections, instance, func(s SectionState, id protocol.InstanceID) int {
		return cmp.Compare(s.Instance, id)
	})
	if !ok {
		return protocol.Section{}
	}
	return m.Sections[at].Section
}

// CheckSections reports why this program cannot continue from what cores say in the snapshot; nil: it
// can. A snapshot with a section that this program does not know is refused, and so is one without
// a section that its core needs: what follows from the log would be wrong from then on.
func (m *Meta) CheckSections(derive Derive) error {
	_, err := m.Derived(derive)
	return err
}

// Derived is the derived state of each of the cursor's points, nil where the core has none, or nothing if no core has
// one.
func (m *Meta) Derived(derive Derive) ([]protocol.Derived, error) {
	if err := m.ValidSections(); err != nil {
		return nil, err
	}
	if derive == nil {
		if len(m.Sections) > 0 {
			return nil, noSection(&m.Sections[0].Section)
		}
		return nil, nil
	}
	var all []protocol.Derived
	for _, p := range m.Cursor.Points {
		base := m.Base(p.Instance)
		d := derive(base.Config)
		var err error
		switch {
		case d != nil:
			err = base.Restore(d)
		case base.Section.Name != "":
			err = noSection(&base.Section)
		}
		if err != nil {
			return nil, sectionError(p.Instance, &base.Section, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// noSection refuses a section where none is known.
func noSection(s *protocol.Section) error {
	return &protocol.SectionError{Name: s.Name, Version: s.Version, Detail: "is not known, nor is any other"}
}

// sectionError is a SectionError whatever Restore returned.
func sectionError(instance protocol.InstanceID, s *protocol.Section, err error) error {
	if errors.As(err, new(*protocol.SectionError)) {
		return fmt.Errorf("instance %d: %w", instance, err)
	}
	return fmt.Errorf("instance %d: %w", instance,
		&protocol.SectionError{Name: s.Name, Version: s.Version, Detail: "cannot be read: " + err.Error()})
}

// ValidSections reports sections that no member would write; nil: there are none of that kind.
func (m *Meta) ValidSections() error {
	for i := range m.Sections {
		s := &m.Sections[i]
		if err := s.Valid(); err != nil {
			return sectionError(s.Instance, &s.Section, err)
		}
		if !slices.Contains(m.Cursor.Instances(), s.Instance) || i > 0 && m.Sections[i-1].Instance >= s.Instance {
			return sectionError(s.Instance, &s.Section,
				&protocol.SectionError{Name: s.Name, Version: s.Version, Detail: "has no instance of its own"})
		}
	}
	return nil
}

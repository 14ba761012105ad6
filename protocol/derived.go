package protocol

import "fmt"

// Derived is state computed from an instance's log that is not a command: how far lanes are confirmed, the epoch, the
// banned members. All members derive the same from the same log. A member keeps one alongside the state machine, as of
// what is applied. It is part of every snapshot, as a [Section], and a core begins with the section of the snapshot
// before its log (Base.Section). The core may keep another one, as of the end of its log. At an instance's beginning it
// follows from the first configuration alone. Not safe for concurrent use.
type Derived interface {
	// Apply takes in the next entry, in index order. Its payload is available, its body is not. An
	// order may leave out what has no place in the global log: no-ops, skips and reshapes. So nothing
	// may follow from these.
	Apply(e *Entry)
	// Section is the state for a snapshot. No one writes to its bytes afterwards.
	Section() Section
	// Restore replaces this state by that of a section. If the section is not of its name, of a version that it does not
	// know, or not what Section wrote, Restore returns an error. The zero Section means that the snapshot has none.
	// After an error the Derived is not used.
	Restore(Section) error
}

// Meeting is a [Derived] of a core whose members have different logs. There are entries at which they meet: all members
// that come to one of these have the same index, the same state and the same section there. Snapshots stand at these
// alone. So a member without the state of a snapshot has executed nothing that the snapshot is missing.
type Meeting interface {
	Derived
	// Meets reports whether members meet at an entry. Its payload need not be available.
	Meets(e *Entry) bool
}

// Section is what a [Derived] says in a snapshot. Others do not understand it, and no one carries it along unread: it
// would be out of date with the next entry.
type Section struct {
	Name string `json:"name"`
	// Version is that of the form of Data, from 1 on. Raise it when an earlier program could not
	// continue from the section.
	Version uint32 `json:"version"`
	Data    []byte `json:"data,omitempty"` // never written to
}

// Expect reports why a section is not one of this name and version; nil: it is.
func (s *Section) Expect(name string, version uint32) error {
	switch {
	case s.Name == "":
		return &SectionError{Name: name, Detail: "is missing"}
	case s.Name != name:
		return &SectionError{Name: s.Name, Version: s.Version, Detail: "is not known, " + name + " is"}
	case s.Version != version:
		return &SectionError{Name: name, Version: s.Version, Detail: fmt.Sprintf("is not known, version %d is", version)}
	}
	return nil
}

// Valid reports why no member could read the section; nil: its size and its name are permitted.
func (s *Section) Valid() error {
	if s.Name == "" || len(s.Name) > MaxSectionName || s.Version == 0 || len(s.Data) > MaxSectionBytes {
		return &SectionError{Name: s.Name[:min(len(s.Name), MaxSectionName)], Version: s.Version,
			Detail: fmt.Sprintf("has %d bytes and a name of %d; at most %d and %d are permitted", len(s.Data), len(s.Name),
				MaxSectionBytes, MaxSectionName)}
	}
	return nil
}

// SectionError indicates that a snapshot's section is not one that this program can continue from. The snapshot was not
// used, and trying again does not help: it was made by another version of braid, or by another protocol.
type SectionError struct {
	Name    string
	Version uint32 // 0: there is none
	Detail  string
}

func (e *SectionError) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("section %q of the snapshot %s", e.Name, e.Detail)
	}
	return fmt.Sprintf("section %q, version %d, of the snapshot %s", e.Name, e.Version, e.Detail)
}

// Restore brings a Derived that has taken in nothing to where the base is. Before an instance's first
// entry there is nothing to restore.
func (b *Base) Restore(d Derived) error {
	if b.Index == 0 {
		return nil
	}
	return d.Restore(b.Section)
}

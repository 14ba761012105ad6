package protocol

import "fmt"

// Derived is state computed from an instance's log that is not a command: how far lanes are confirmed, the epoch, the
// banned members. All members derive the same from the same log. A member keeps one alongside the state machine, as
// of what is applied. It is part of every snapshot, as a [Section], and a core starts with the section of the
// snapshot before its log (Base.Section). The core may keep a second one, as of the end of its log. At an instance's
// beginning it follows from the first configuration alone. Not safe for concurrent use.
type Derived interface {
	// Apply takes the next entry, in index order. Its payload is available, its body is not. An order may omit entries
	// without a place in the global log: no-ops, skips and reshapes. So the state must not depend on these.
	Apply(e *Entry)
	// Section returns the state for a snapshot. Its bytes are never written to afterwards. The zero Section: the
	// snapshot needs none, as the state follows from its configuration.
	Section() Section
	// Restore replaces this state by that of a section. It returns an error if the section has another name, an unknown
	// version, or invalid data. The zero Section means that the snapshot has none. After an error the Derived is not
	// used.
	Restore(Section) error
}

// Meeting is a [Derived] of a core whose members have different logs. Members meet at some entries: all that reach
// one of these have the same index, the same state and the same section there. Snapshots are taken only there. So a
// member without the state of a snapshot has executed nothing that the snapshot does not have.
type Meeting interface {
	Derived
	// Meets reports whether members meet at an entry. Its payload need not be available.
	Meets(e *Entry) bool
}

// Section is the state of a [Derived] in a snapshot. Only that Derived understands it, and it must not be copied to a
// later snapshot: it would be out of date with the next entry.
type Section struct {
	Name string `json:"name"`
	// Version is the version of the format of Data, from 1 on. Raise it when an earlier program could not continue from
	// the section.
	Version uint32 `json:"version"`
	Data    []byte `json:"data,omitempty"` // never written to
}

// Expect returns an error if a section has another name or version.
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

// Valid returns an error if no member could read the section: its size or its name is not permitted.
func (s *Section) Valid() error {
	if s.Name == "" || len(s.Name) > MaxSectionName || s.Version == 0 || len(s.Data) > MaxSectionBytes {
		return &SectionError{Name: s.Name[:min(len(s.Name), MaxSectionName)], Version: s.Version,
			Detail: fmt.Sprintf("has %d bytes and a name of %d; at most %d and %d are permitted", len(s.Data), len(s.Name),
				MaxSectionBytes, MaxSectionName)}
	}
	return nil
}

// SectionError indicates that this program cannot continue from a snapshot's section. The snapshot was not used, and
// a retry does not help: another version of braid or another protocol made it.
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

// Restore brings a Derived without entries to the state at the base. Before an instance's first entry there is
// nothing to restore.
func (b *Base) Restore(d Derived) error {
	if b.Index == 0 {
		return nil
	}
	return d.Restore(b.Section)
}

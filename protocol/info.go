package protocol

import "github.com/braidlog/braid/protocol/setting"

// Info is all that others know of a protocol's core: a member, its directory, the simulator and its judges. Each core
// has one in its package. Protocols that differ only in order and placement have the same core.
type Info struct {
	// Name is compared when members connect: members with different cores do not understand each other.
	Name string
	// New starts an instance from what the disk holds. It returns a [*SettingsError] or a [*CorruptError].
	New func(Settings, Recovered) (Core, error)
	// Settings are the core's own: no other core has them, except for those that say the same.
	Settings setting.Table
	// Codec decodes the core's messages.
	Codec *Codec
	// Cells says how instances use cells (see [Cell]); nil: they keep none.
	Cells *CellUse
	// Derive makes what an instance derives from its log and keeps in snapshots (see [Derived]), as of its beginning. It
	// is given the first configuration, that of the base at index 0. If the base is later, the section comes into the
	// place of what it made. The settings are complete. nil: the instance derives nothing.
	Derive func(setting.Values, Config) Derived
	// Section is the name of the section that Derive's states have in every snapshot that stands for entries.
	Section string
	// Wrote reports whether the core may have written a record. By that a directory that does not tell its core says what
	// it is (see registry.Guess).
	Wrote func(*Record) bool
	// Begins is the kind of an entry that every log has from its first leader on, before or right after its first
	// commands; 0: there is none.
	Begins EntryKind
	// Behind are entries behind the log that an instance's disk holds, as they might have been decided, with indexes that
	// continue where the log ends. They are for recovery without a majority. nil: it holds none.
	Behind func(*Recovered) []Entry
	// Proposing is how the core takes proposals.
	Proposing Proposing
	// Judged is for those who judge its members.
	Judged Judged
	// Mutants are rules that can be broken on purpose. The simulator must catch each.
	Mutants []MutantInfo
}

// CellUse says what the cells of a core's instances are for.
type CellUse struct {
	// Entry is the entry that an acceptor's cell holds, false if there is none. A member keeps its body, and judges count
	// it as stored. nil: cells hold none.
	Entry func(Cell) (Entry, bool)
}

// Accepted is Entry, or nil for a core without cells.
func (u *CellUse) Accepted() func(Cell) (Entry, bool) {
	if u == nil {
		return nil
	}
	return u.Entry
}

// Deriving is Derive of a cluster whose settings are complete; nil: instances derive nothing.
func (i *Info) Deriving(set setting.Values) func(Config) Derived {
	if i.Derive == nil {
		return nil
	}
	return func(first Config) Derived { return i.Derive(set, first) }
}

// Deriver is [Info].Derive of a core whose settings do not change what it derives.
func Deriver(derive func(Config) Derived) func(setting.Values, Config) Derived {
	return func(_ setting.Values, first Config) Derived { return derive(first) }
}

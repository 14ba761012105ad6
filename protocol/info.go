package protocol

import (
	"slices"

	"github.com/braidlog/braid/protocol/setting"
)

// Info describes a protocol's core to others: a member, its directory, the simulator and its checkers. Each core has
// one in its package. Protocols that differ only in order and placement have the same core.
type Info struct {
	// Name is compared when members connect: members with different cores do not understand each other.
	Name string
	// Former are cores of earlier versions that this core with some settings continues.
	Former []Former
	// New starts an instance from what the disk holds. It returns a [*SettingsError] or a [*CorruptError].
	New func(Settings, Recovered) (Core, error)
	// Settings are the core's own. Another core has them only with the same meaning.
	Settings setting.Table
	// Merges returns why the logs of several instances with these settings, which are complete, cannot be merged; nil:
	// the settings do not matter. The error is a [*setting.Error].
	Merges func(setting.Values) error
	// Codec decodes the core's messages.
	Codec *Codec
	// Cells describes how instances use cells (see [Cell]); nil: they use none.
	Cells *CellUse
	// Derive creates the state that an instance derives from its log and keeps in snapshots (see [Derived]), as of its
	// beginning. Its argument is the first configuration, that of the base at index 0. If the base is later, the
	// section replaces the state. The settings are complete. nil: the instance derives nothing.
	Derive func(setting.Values, Config) Derived
	// Section is the name of the section of Derive's states, in every snapshot that covers entries; "": some have none.
	Section string
	// Wrote reports whether the core may have written a record. It identifies the core of a directory that does not
	// record it (see registry.Guess).
	Wrote func(*Record) bool
	// Begins is the kind of an entry that every log has since its first leader, before or right after its first
	// commands; 0: there is none.
	Begins EntryKind
	// Behind returns entries after the end of the log that an instance's disk holds, as they might have been decided,
	// with indexes that continue the log. They are for recovery without a majority. nil: it holds none.
	Behind func(*Recovered) []Entry
	// Proposing describes how the core takes proposals.
	Proposing Proposing
	// Judged describes the core to checkers.
	Judged Judged
	// Mutants are rules that can be broken on purpose. The simulator must catch each.
	Mutants []MutantInfo
}

// Former is a core of an earlier version, that a core now is with some of its own settings. Members with these settings
// still compare its name, and directories record it.
type Former struct {
	Name     string
	Settings setting.Values
	// Section, Wrote and Begins are as in [Info].
	Section string
	Wrote   func(*Record) bool
	Begins  EntryKind
}

// Told returns what members compare and directories record of the core: its name, and its own settings that the name
// does not say.
func (i *Info) Told(own setting.Values) (name string, rest setting.Values) {
	for _, f := range i.Former {
		if f.Settings.Over(own) == own {
			for n := range f.Settings.All() {
				own = own.Without(n)
			}
			return f.Name, own
		}
	}
	return i.Name, own
}

// As returns own settings of a log that began under a recorded name: with those that the name says, and without those
// that another one says.
func (i *Info) As(name string, own setting.Values) setting.Values {
	for _, f := range i.Former {
		for n := range f.Settings.All() {
			own = own.Without(n)
		}
	}
	for _, f := range i.Former {
		if f.Name == name {
			own = f.Settings.Over(own)
		}
	}
	return own
}

// Known reports whether a name is the core's, or that of a former one.
func (i *Info) Known(name string) bool {
	return i.Name == name || slices.ContainsFunc(i.Former, func(f Former) bool { return f.Name == name })
}

// CellUse describes the cells of a core's instances.
type CellUse struct {
	// If reports whether instances use cells from the beginning on. nil: always. If not, the directory records it before
	// the first one is written, so that a start knows that a damaged part of the log may have had some.
	If func(own setting.Values) bool
	// Entry returns the entry in an acceptor's cell, false if there is none. A member keeps its body, and checkers
	// count it as stored. nil: cells hold none.
	Entry func(Cell) (Entry, bool)
}

// Accepted is Entry, or nil for a core without cells.
func (u *CellUse) Accepted() func(Cell) (Entry, bool) {
	if u == nil {
		return nil
	}
	return u.Entry
}

// With is the use that a cluster with these settings begins with; nil: none.
func (u *CellUse) With(own setting.Values) *CellUse {
	if u == nil || u.If != nil && !u.If(own) {
		return nil
	}
	return u
}

// Deriving returns Derive for a cluster with complete settings; nil: instances derive nothing.
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

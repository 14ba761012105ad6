package replica

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Program is what instances have of their core. It follows from the profile with which they begin. The zero value of a
// field other than Core and Codec is that of a core that has nothing of the kind.
type Program struct {
	// Core makes an instance's core from what was on disk.
	Core func(protocol.InstanceID, protocol.Session, protocol.Recovered) (protocol.Core, error)
	// Codec is what is known of the core's messages.
	Codec *protocol.Codec
	// Proposing is how the core takes proposals.
	Proposing protocol.Proposing
	// Accepted returns the entry in a cell: see protocol.CellUse.Entry.
	Accepted func(protocol.Cell) (protocol.Entry, bool)
	// Derive makes what the core derives from its log.
	Derive member.Derive
	// Merges: the log is merged from several instances that have the core, or can be. Grows: their number can change.
	Merges, Grows bool
	// Decided: the core's logs have decided entries only, see protocol.Judged.
	Decided bool
	// Profile is the one that all this follows from, with complete values.
	Profile protocol.Profile
}

// grows reports whether a log under a profile can be merged from another number of instances.
func (o *Options) grows(profile *protocol.Profile) bool {
	p, err := o.Program(profile)
	return err == nil && p.Grows
}

// derive makes what the core of an instance derives. A member that does not know the core stops before it needs that,
// and takes no snapshot of such an instance.
func (o *Options) derive(first protocol.Config) protocol.Derived {
	p, err := o.Program(&first.Profile)
	switch {
	case err != nil:
		return unknown{err}
	case p.Derive == nil:
		return nil
	}
	return p.Derive(first)
}

// accepted is what reads the entry in a cell of an instance; nil: there is none.
func (o *Options) accepted(profile *protocol.Profile) func(protocol.Cell) (protocol.Entry, bool) {
	p, err := o.Program(profile)
	if err != nil {
		return nil
	}
	return p.Accepted
}

// unknown is the derived state of a core that this program does not know.
type unknown struct{ err error }

func (unknown) Apply(*protocol.Entry)            {}
func (unknown) Section() protocol.Section        { return protocol.Section{} }
func (u unknown) Restore(protocol.Section) error { return u.err }

package epaxos

import "github.com/braidlog/braid/protocol"

// Executed is the state that is derived from the log and stored in snapshots: the executed commands, and which of
// them interfere.
type Executed struct {
	vector Vector
	index  *Index
}

// The section: the vector, then the encoding of Index.AppendExecuted.
const (
	SectionName     = "epaxos"
	executedVersion = 1
)

// Derive returns the derived state of an empty log. It does not depend on the members.
func Derive(protocol.Config) protocol.Derived { return &Executed{index: &Index{}} }

// Apply implements protocol.Derived, as the methods below do.
func (x *Executed) Apply(e *protocol.Entry) {
	notes, err := notesOf(e)
	if err != nil {
		return // no member has written it
	}
	for i := range notes {
		x.execute(&notes[i])
	}
}

func (x *Executed) execute(n *note) {
	x.vector = x.vector.raise(n.ID)
	if !n.Noop {
		x.index.Execute(n.ID, n.Touches)
	}
}

// Meets implements protocol.Meeting.
func (x *Executed) Meets(e *protocol.Entry) bool { return meets(e) }

// Section returns the vector and the index.
func (x *Executed) Section() protocol.Section {
	return protocol.Section{Name: SectionName, Version: executedVersion,
		Data: x.index.AppendExecuted(appendVector(nil, x.vector))}
}

// Restore sets the state to that of a section.
func (x *Executed) Restore(s protocol.Section) error {
	if err := s.Expect(SectionName, executedVersion); err != nil {
		return err
	}
	in := reader{b: s.Data}
	x.vector = in.vector()
	if in.failed {
		return corrupt("section", s.Data)
	}
	index, err := RestoreIndex(in.b)
	if err == nil && !x.vector.Dominates(index.executed.any) {
		err = corrupt("section", s.Data)
	}
	x.index = index
	return err
}

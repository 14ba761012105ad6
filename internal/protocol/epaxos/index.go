package epaxos

import (
	"fmt"
	"slices"
)

// Classes is the number of classes of keys. It is the same on all members and never changes: it determines which
// commands interfere.
const Classes = 1 << 12

// Touches are the classes of keys that a command touches, ascending; none: it may touch every key.
type Touches []uint16

// TouchesOf returns the classes of keys, given by their hashes.
func TouchesOf(keys []uint64) Touches {
	t := make(Touches, len(keys))
	for i, key := range keys {
		t[i] = uint16((key ^ key>>32) % Classes)
	}
	slices.Sort(t)
	return slices.Compact(t)
}

// Interfere reports whether both commands touch a common class.
func (t Touches) Interfere(u Touches) bool {
	if len(t) == 0 || len(u) == 0 {
		return true
	}
	for i, j := 0, 0; i < len(t) && j < len(u); {
		switch {
		case t[i] == u[j]:
			return true
		case t[i] < u[j]:
			i++
		default:
			j++
		}
	}
	return false
}

// latest has for each column the last command that touches a class.
type latest struct {
	classes [Classes]Vector
	touched []uint16 // classes that any command touches, in the order in which they were added
	all     Vector   // of commands that may touch every key
	any     Vector   // of all commands
}

func (l *latest) add(id ID, t Touches) {
	l.any = l.any.raise(id)
	if len(t) == 0 {
		l.all = l.all.raise(id)
	}
	for _, class := range t {
		l.set(class, l.classes[class].raise(id))
	}
}

// set replaces the commands that touch a class.
func (l *latest) set(class uint16, v Vector) {
	if l.classes[class] == nil && v != nil {
		l.touched = append(l.touched, class)
	}
	l.classes[class] = v
}

// interfering has for each column the last command that interferes with one that touches t.
func (l *latest) interfering(t Touches) Vector {
	if len(t) == 0 {
		return l.any.Clone()
	}
	v := l.all.Clone()
	for _, class := range t {
		v = v.unite(l.classes[class])
	}
	return v
}

// Index knows which classes commands touch. Its size depends only on the number of classes and columns.
type Index struct {
	known    latest // commands that the member knows, including those of which it knows only the id
	executed latest // executed commands, without no-ops
	// For all touches: the commands that interfere in executed are also in known.
}

// Know adds a command. If only its id is known, t is nil: it may touch everything.
func (x *Index) Know(id ID, t Touches) { x.known.add(id, t) }

// Execute adds a command that was executed and is not a no-op.
func (x *Index) Execute(id ID, t Touches) {
	x.known.add(id, t)
	x.executed.add(id, t)
}

// Deps are the dependencies of a command, as far as this member knows (rules 2 and 3).
func (x *Index) Deps(id ID, t Touches) Vector { return x.known.interfering(t).own(id) }

// Executed has for each column the last executed command that interferes.
func (x *Index) Executed(t Touches) Vector { return x.executed.interfering(t) }

// Prune drops all commands that were not executed. The caller adds the undecided ones again. So a no-op that was
// executed is no longer a dependency.
func (x *Index) Prune() {
	x.known.any, x.known.all = x.executed.any.Clone(), x.executed.all.Clone()
	for _, class := range x.known.touched {
		x.known.classes[class] = nil
	}
	x.known.touched = x.known.touched[:0]
	for _, class := range x.executed.touched {
		x.known.set(class, x.executed.classes[class].Clone())
	}
}

func (x *Index) check() error {
	for _, class := range x.executed.touched {
		if v := x.executed.classes[class]; !x.known.classes[class].Dominates(v) {
			return fmt.Errorf("class %d: executed %s, known %s", class, v, x.known.classes[class])
		}
	}
	if !x.known.all.Dominates(x.executed.all) || !x.known.any.Dominates(x.known.all) ||
		!x.known.any.Dominates(x.executed.any) {
		return fmt.Errorf("commands that touch all: executed %s, known %s of %s", x.executed.all, x.known.all, x.known.any)
	}
	return nil
}

// AppendExecuted appends the state of executed commands: a member that installs a snapshot continues from it.
func (x *Index) AppendExecuted(dst []byte) []byte {
	dst = appendVector(dst, x.executed.any)
	dst = appendVector(dst, x.executed.all)
	for class := range x.executed.classes {
		dst = appendVector(dst, x.executed.classes[class])
	}
	return dst
}

// RestoreIndex decodes what AppendExecuted encoded.
func RestoreIndex(b []byte) (*Index, error) {
	x, r := &Index{}, reader{b: b}
	x.executed.any, x.executed.all = r.vector(), r.vector()
	for class := range uint16(Classes) {
		x.executed.set(class, r.vector())
	}
	if !r.ended() {
		return nil, corrupt("index", b)
	}
	for _, v := range x.executed.classes {
		if !x.executed.any.Dominates(v) {
			return nil, corrupt("index", b)
		}
	}
	if !x.executed.any.Dominates(x.executed.all) {
		return nil, corrupt("index", b)
	}
	x.Prune()
	return x, nil
}

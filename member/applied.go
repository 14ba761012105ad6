package member

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// Applied is what Apply lets others know: how far it is, and who waits for that. It is shared by
// Apply, the instances and whoever asks, and not safe for concurrent use.
type Applied struct {
	cursor order.Cursor
	// shape are the instances in force, and added how much of each is in the order, with all
	// that follows from it applied.
	shape   []protocol.InstanceID
	added   []protocol.Index
	backlog []int             // how many entries of each wait for their turn
	configs []protocol.Config // of the instances in force; the first is the cluster's

	groups   ReadGroups
	changing []configWaiter

	// Repairing says that the state is damaged, and another member's is to take its place; Needs
	// what that must include.
	Repairing bool
	Needs     order.Cursor
}

type configWaiter struct {
	ok   func([]protocol.Config) bool
	done func()
}

// NewApplied is what is known before anything is applied in this life.
func NewApplied(a *Applier) *Applied {
	p := &Applied{configs: a.Configs()}
	p.note(a)
	return p
}

func (p *Applied) note(a *Applier) {
	p.cursor = a.Cursor()
	if n := len(p.cursor.Points); n != len(p.added) || p.cursor.Points[n-1].Instance != p.shape[n-1] {
		p.shape, p.added = p.cursor.Instances(), make([]protocol.Index, n)
		p.backlog = make([]int, n)
	}
	for i, id := range p.shape {
		p.added[i], p.backlog[i] = a.Added(id), a.Waiting(id)
	}
}

// Note takes down how far the applier is. It returns the groups of reads that are served by that,
// and those that must be asked for anew, since the instances in force changed under them.
func (p *Applied) Note(a *Applier) (ready, void []*ReadGroup) {
	p.note(a)
	return p.groups.Served(p.shape, p.added)
}

// NoteConfigs takes down the memberships, and returns what to tell those who waited for them.
func (p *Applied) NoteConfigs(a *Applier) (done []func()) {
	p.configs = a.Configs() // shared with nobody who would change them
	p.note(a)
	keep := p.changing[:0]
	for _, w := range p.changing {
		if w.ok(p.configs) {
			done = append(done, w.done)
		} else {
			keep = append(keep, w)
		}
	}
	clear(p.changing[len(keep):])
	p.changing = keep
	return done
}

// WhenConfigs reports whether the memberships of all instances satisfy ok already; if not, done is
// called when they do.
func (p *Applied) WhenConfigs(ok func([]protocol.Config) bool, done func()) bool {
	if ok(p.configs) {
		return true
	}
	p.changing = append(p.changing, configWaiter{ok, done})
	return false
}

// At is how far is applied, and the memberships, of the instances in force.
func (p *Applied) At() (order.Cursor, []protocol.Config) { return p.cursor, p.configs }

// Shape are the instances in force.
func (p *Applied) Shape() []protocol.InstanceID { return p.shape }

// Config is the membership of an instance; of one that is not in force the cluster's.
func (p *Applied) Config(instance protocol.InstanceID) protocol.Config {
	return p.configs[max(0, p.place(instance))]
}

// Of is the last entry of an instance that is in the order, and the last that is applied; false if
// the instance is not in force.
func (p *Applied) Of(instance protocol.InstanceID) (added, applied protocol.Index, ok bool) {
	i := p.place(instance)
	if i < 0 {
		return 0, 0, false
	}
	return p.added[i], p.cursor.Points[i].Index, true
}

// Backlog is how many entries of an instance wait for their turn.
func (p *Applied) Backlog(instance protocol.InstanceID) int {
	if i := p.place(instance); i >= 0 {
		return p.backlog[i]
	}
	return 0
}

// place is where an instance is among those in force; -1 if it is not.
func (p *Applied) place(instance protocol.InstanceID) int {
	for i, id := range p.shape {
		if id == instance {
			return i
		}
	}
	return -1
}

// Ask begins a group's read point, of these instances, or begins it anew. It reports false if the
// group has ended.
func (p *Applied) Ask(g *ReadGroup, shape []protocol.InstanceID) bool { return p.groups.Ask(g, shape) }

// ReadPoint takes in an instance's part of a group's read point. complete says that it was the last
// one, ready that the state serves the group, which has ended.
func (p *Applied) ReadPoint(g *ReadGroup, instance protocol.InstanceID, index protocol.Index) (complete, ready bool) {
	return p.groups.Point(g, instance, index, p.shape, p.added)
}

// FailRead ends a group without an answer. It reports false if it had ended.
func (p *Applied) FailRead(g *ReadGroup) bool { return p.groups.Fail(g) }

// Asking is how many groups wait for read points.
func (p *Applied) Asking() int { return p.groups.Under }

// Break makes a mutant of it.
func (p *Applied) Break(m Mutant) { p.groups.Mutant = m }

// StateFor is why this member cannot send its state to one whose own is damaged, and which needs so
// much; nil if it can.
func (p *Applied) StateFor(needs *order.Cursor) error {
	switch {
	case p.Repairing:
		return errors.New("this member's state is damaged itself")
	case p.cursor.Before(needs):
		return fmt.Errorf("this member's state is at %d, which is behind %d", p.cursor.Position, needs.Position)
	}
	return nil
}

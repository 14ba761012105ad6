package member

import (
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// Applied is what Apply lets others know: how far it has applied, and who waits for that. Apply,
// the instances and whoever asks share it. It is not safe for concurrent use.
type Applied struct {
	cursor order.Cursor
	// shape are the instances in force. added says how much of each is in the order; everything
	// that follows from that is applied.
	shape   []protocol.InstanceID
	added   []protocol.Index
	backlog []int             // how many entries of each wait in the order
	configs []protocol.Config // of the instances in force; the first is the cluster's

	groups  ReadGroups
	waiting []*ConfigWait

	// Repairing says that the state is damaged, and that another member's state is to take its
	// place. Needs says what that state must include.
	Repairing bool
	Needs     order.Cursor
}

// ConfigWait is somebody who waits until the memberships of all instances satisfy OK. Done is called
// then.
type ConfigWait struct {
	OK   func([]protocol.Config) bool
	Done func()
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

// Note notes how far the applier is. It returns the groups of reads that this serves. It also
// returns those that must be asked for anew, because the instances in force have changed since.
func (p *Applied) Note(a *Applier) (ready, void []*ReadGroup) {
	p.note(a)
	return p.groups.Served(p.shape, p.added)
}

// NoteConfigs notes the memberships. It returns the functions to call for those who waited for
// them.
func (p *Applied) NoteConfigs(a *Applier) (done []func()) {
	p.configs = a.Configs() // shared with nobody who would change them
	p.note(a)
	p.waiting = slices.DeleteFunc(p.waiting, func(w *ConfigWait) bool {
		over := w.OK(p.configs)
		if over {
			done = append(done, w.Done)
		}
		return over
	})
	return done
}

// AwaitConfigs reports whether the memberships satisfy w already. If not, its Done is among what
// NoteConfigs returns once they do, unless ForgetConfigs ends the wait before that.
func (p *Applied) AwaitConfigs(w *ConfigWait) (already bool) {
	if already = w.OK(p.configs); !already {
		p.waiting = append(p.waiting, w)
	}
	return already
}

// ForgetConfigs ends a wait, if it has not ended.
func (p *Applied) ForgetConfigs(w *ConfigWait) {
	p.waiting = slices.DeleteFunc(p.waiting, func(o *ConfigWait) bool { return o == w })
}

// AwaitingConfigs is how many wait for memberships.
func (p *Applied) AwaitingConfigs() int { return len(p.waiting) }

// At returns how far the global log is applied, and the memberships of the instances in force.
func (p *Applied) At() (order.Cursor, []protocol.Config) { return p.cursor, p.configs }

// Shape are the instances in force.
func (p *Applied) Shape() []protocol.InstanceID { return p.shape }

// Config returns the membership of an instance. For one that is not in force it returns the
// cluster's.
func (p *Applied) Config(instance protocol.InstanceID) protocol.Config {
	return p.configs[max(0, p.place(instance))]
}

// Of returns the last entry of an instance that is in the order, and the last that is applied. ok
// is false if the instance is not in force.
func (p *Applied) Of(instance protocol.InstanceID) (added, applied protocol.Index, ok bool) {
	i := p.place(instance)
	if i < 0 {
		return 0, 0, false
	}
	return p.added[i], p.cursor.Points[i].Index, true
}

// Backlog is how many entries of an instance wait in the order.
func (p *Applied) Backlog(instance protocol.InstanceID) int {
	if i := p.place(instance); i >= 0 {
		return p.backlog[i]
	}
	return 0
}

// place is where an instance stands among those in force; -1 if it is not in force.
func (p *Applied) place(instance protocol.InstanceID) int {
	for i, id := range p.shape {
		if id == instance {
			return i
		}
	}
	return -1
}

// Ask begins a group's read point, which has a part from each of these instances, or begins it
// anew. It reports false if the group has ended.
func (p *Applied) Ask(g *ReadGroup, shape []protocol.InstanceID) bool { return p.groups.Ask(g, shape) }

// ReadPoint takes in an instance's part of a group's read point. complete says that it was the
// last part. ready says that the state serves the group; the group has ended then.
func (p *Applied) ReadPoint(g *ReadGroup, instance protocol.InstanceID, index protocol.Index) (complete, ready bool) {
	return p.groups.Point(g, instance, index, p.shape, p.added)
}

// FailRead ends a group without an answer. It reports false if it had ended.
func (p *Applied) FailRead(g *ReadGroup) bool { return p.groups.Fail(g) }

// Asking is how many groups wait for read points.
func (p *Applied) Asking() int { return p.groups.Under }

// Break makes a mutant of it.
func (p *Applied) Break(m Mutant) { p.groups.Mutant = m }

// StateFor returns why this member cannot send its state to a member whose own state is damaged,
// and which needs this much; nil if it can.
func (p *Applied) StateFor(needs *order.Cursor) error {
	switch {
	case p.Repairing:
		return errors.New("this member's state is damaged itself")
	case p.cursor.Before(needs):
		return fmt.Errorf("this member's state is at %d, which is behind %d", p.cursor.Position, needs.Position)
	}
	return nil
}

package intake

import (
	"fmt"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// In a keyed order (see order.Keyed) each command goes to the group of its keys, and to no other, however
// often it is proposed. So each group has a queue of its own, and numbers of its own: what takes effect at
// most once is decided in each group by that group's log alone.

// GroupError says that a command has no group in a keyed order. Nothing happened. Do not retry.
type GroupError struct{ Detail string }

func (e *GroupError) Error() string { return "braid: no group of keys takes the command: " + e.Detail }

// groupQueue is what waits for one group.
type groupQueue struct {
	queue   batchQueue
	numbers numbers
}

// SetGroups makes the order of the proposals keyed. groups are its instances. It is called before
// anything is proposed.
func (p *Proposals) SetGroups(groups []protocol.InstanceID) {
	p.groups, p.queues = groups, make([]groupQueue, len(groups))
}

// Keyed reports whether each command goes to the group of its keys.
func (p *Proposals) Keyed() bool { return len(p.groups) > 0 }

// Home is the only instance that may take a command with these options. If the order is not keyed,
// any instance may: that is 0, and an error says that a command has no group. It depends on nothing that
// changes.
func (p *Proposals) Home(o *protocol.ProposeOptions) (protocol.InstanceID, error) {
	if !p.Keyed() {
		return 0, nil
	}
	if err := o.Validate(); err != nil {
		return 0, err
	}
	at, ok := order.GroupOf(o.Keys, len(p.groups))
	switch {
	case len(o.Keys) == 0:
		return 0, &GroupError{"it does not say which keys it touches"}
	case !ok:
		return 0, &GroupError{fmt.Sprintf("its %d keys belong to several groups, which have no common order", len(o.Keys))}
	case len(o.After) > 0:
		return 0, &GroupError{"it names commands after which it is to take effect, and these may be in other groups"}
	}
	return p.groups[at], nil
}

// of is what waits for an instance.
func (p *Proposals) of(instance protocol.InstanceID) *batchQueue {
	if g := p.groupOf(instance); g != nil {
		return &g.queue
	}
	return &p.queue
}

func (p *Proposals) groupOf(instance protocol.InstanceID) *groupQueue {
	for i, id := range p.groups {
		if id == instance {
			return &p.queues[i]
		}
	}
	return nil
}

// numbersOf are those from which a batch gets its own.
func (p *Proposals) numbersOf(b *Batch) *numbers {
	if g := p.groupOf(b.home); g != nil {
		return &g.numbers
	}
	return &p.numbers
}

// addTo puts a command into the open batch of its group.
func (p *Proposals) addTo(home protocol.InstanceID, q *batchQueue, command []byte, done Done) (fresh bool, b *Batch) {
	b = q.room(p, command)
	if fresh = b == nil; fresh {
		b = q.begin(p, 0, command)
		b.home = home
	}
	b.Add(command, done)
	p.took(b)
	q.added(p)
	return fresh, b
}

// refuseUnkeyed is why a batch cannot be added that is not of a group.
func (p *Proposals) refuseUnkeyed(b *Batch) error {
	switch {
	case !p.Keyed() || b.home != 0:
		return nil
	case b.Entry.BodySize > 0 || len(b.Entry.Body) > 0:
		return &GroupError{"it has a body, and groups have none"}
	}
	return &GroupError{"it does not say which keys it touches"}
}

// all are the queues of all groups, or the one queue.
func (p *Proposals) all(yield func(*batchQueue) bool) {
	if !yield(&p.queue) {
		return
	}
	for i := range p.queues {
		if !yield(&p.queues[i].queue) {
			return
		}
	}
}

// anyGroup is, for a mutant, what waits for an instance, or for another one if nothing waits for it.
func (p *Proposals) anyGroup(instance protocol.InstanceID) *batchQueue {
	q := p.of(instance)
	for o := range p.all {
		if bytes, _, _ := q.waiting(); bytes > 0 {
			break
		}
		q = o
	}
	return q
}

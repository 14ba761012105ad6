package order

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Keyed is the order of several instances, the groups, that share no keys. Each group has an order of its own, in
// which an entry gets its place as soon as it is committed. There is no order between commands of different groups,
// so members may place these in different orders. Positions count within a group.
//
// A member has placed a prefix of each group's log. So one cursor may be ahead of another in some groups and behind
// in others.
type Keyed struct {
	// groups are ascending by instance; never empty.
	groups []group
	// waiting has the entries that were added and not placed, in the order of their arrival.
	waiting queue[arrival]
}

// group is the known state of one instance's log.
type group struct {
	at Point
	// added == at.Index + the group's entries in waiting: nothing is lost between Add and Next.
	added protocol.Index
}

type arrival struct {
	instance protocol.InstanceID
	entry    protocol.Entry
}

// newKeyed returns the order of groups that continues at a cursor.
func newKeyed(from Cursor) *Keyed {
	k := &Keyed{groups: make([]group, len(from.Points))}
	for i, p := range from.Points {
		k.groups[i] = group{at: p, added: p.Index}
	}
	return k
}

func (k *Keyed) group(instance protocol.InstanceID) *group {
	for i := range k.groups {
		if k.groups[i].at.Instance == instance {
			return &k.groups[i]
		}
	}
	return nil
}

// Add implements [Order].
func (k *Keyed) Add(instance protocol.InstanceID, entries []protocol.Entry) {
	g := k.group(instance)
	if g == nil {
		panic(fmt.Sprintf("order: entries of instance %d, which does not exist", instance))
	}
	entries = fresh(instance, g.added, entries)
	g.added += protocol.Index(len(entries))
	for i := range entries {
		k.waiting.push(arrival{instance, entries[i]})
	}
}

// Added implements [Order].
func (k *Keyed) Added(instance protocol.InstanceID) protocol.Index {
	if g := k.group(instance); g != nil {
		return g.added
	}
	return 0
}

// Placed implements [Order].
func (k *Keyed) Placed(instance protocol.InstanceID) protocol.Index { return k.Added(instance) }

// Next implements [Order].
func (k *Keyed) Next(out []Placed) []Placed {
	n := k.waiting.len()
	for i := range n {
		a := k.waiting.at(i)
		g := k.group(a.instance)
		if a.entry.Index <= g.at.Index {
			continue // a snapshot covers it
		}
		out = append(out, Placed{Instance: a.instance, First: g.at.Position + 1, Entry: a.entry})
		g.at.Position += protocol.Position(a.entry.Width())
		g.at.Index, g.at.Term = a.entry.Index, a.entry.Term
	}
	k.waiting.drop(n)
	return out
}

// Sealing implements [Order].
func (k *Keyed) Sealing() *OpenSeal { return nil }

// Seal implements [Order]. It is never called, because Sealing returns nothing.
func (k *Keyed) Seal(bool) *Placed { return nil }

// Cursor implements [Order]. Its position is the sum of the groups' positions, so it rises with each of them.
func (k *Keyed) Cursor() Cursor {
	c := Cursor{Keyed: true, Points: make([]Point, len(k.groups))}
	for i := range k.groups {
		c.Points[i] = k.groups[i].at
		c.Position += k.groups[i].at.Position
	}
	return c
}

// Install implements [Order]. Each group in which the cursor is ahead moves to the cursor's point. The others do not
// change.
func (k *Keyed) Install(to Cursor) {
	at := k.Cursor()
	for _, id := range at.AheadIn(&to) {
		if g := k.group(id); g != nil {
			g.at = to.Point(id)
			g.added = max(g.added, g.at.Index)
		}
	}
}

// AheadIn lists the instances in which another cursor is ahead, ascending.
func (c *Cursor) AheadIn(to *Cursor) (ids []protocol.InstanceID) {
	for _, p := range to.Points {
		if c.Point(p.Instance).Index < p.Index {
			ids = append(ids, p.Instance)
		}
	}
	return ids
}

// Check implements [Order].
func (k *Keyed) Check() error {
	for i := range k.groups {
		g := &k.groups[i]
		last := g.at.Index
		for j := range k.waiting.len() {
			if a := k.waiting.at(j); a.instance == g.at.Instance && a.entry.Index > g.at.Index {
				last = a.entry.Index
			}
		}
		switch {
		case i > 0 && k.groups[i-1].at.Instance >= g.at.Instance:
			return fmt.Errorf("order: instance %d at %d of %d", g.at.Instance, i, len(k.groups))
		case g.added != last:
			return fmt.Errorf("order: instance %d: %d are added, and those up to %d are placed or wait", g.at.Instance, g.added,
				last)
		case uint64(g.at.Position) < uint64(g.at.Index):
			return fmt.Errorf("order: instance %d: position %d < index %d", g.at.Instance, g.at.Position, g.at.Index)
		}
	}
	return nil
}

// GroupOf returns the group, of a given number, of commands with these keys. It depends only on the keys, so all
// members agree, and a command that is proposed again goes to the same group. ok is false if there are no keys, or if
// they belong to different groups: then no group has an order for the commands.
func GroupOf(keys []uint64, groups int) (group int, ok bool) {
	if len(keys) == 0 || groups < 1 {
		return 0, false
	}
	group = int(keys[0] % uint64(groups))
	return group, !slices.ContainsFunc(keys, func(key uint64) bool { return int(key%uint64(groups)) != group })
}

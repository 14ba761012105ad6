package judge

import (
	"cmp"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// shape is the number of instances from a position in the global log on, and the time at which the first member
// reached it.
type shape struct {
	instances int
	start     check.Start
	at        time.Duration
}

// Place is a place in the global log: a slot in a part of it. Each seal begins a part.
type Place struct {
	Part int
	order.Slot
}

// Compare orders places as the global log does.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Part, o.Part), p.Slot.Compare(o.Slot))
}

// PlaceOf is the place of a cursor.
func (c *Court) PlaceOf(at *order.Cursor) Place {
	return Place{c.Weave.Part(uint64(at.Points[0].Instance)), at.Next}
}

// Merged reports whether positions in the global log are judged.
func (c *Court) Merged() bool { return c.rules.Merged }

// Reached records that a member has applied the global log up to a place. It may pass several changes of the number
// of instances at once.
func (c *Court) Reached(at *order.Cursor) {
	p := c.PlaceOf(at)
	here := check.Start{Part: p.Part, Round: max(1, uint64(p.Round))} // also where there are no rounds
	for n, start := range c.Weave.Shapes() {
		if last := c.shapes[len(c.shapes)-1]; start.Compare(last.start) > 0 && start.Compare(here) <= 0 &&
			n != last.instances {
			c.shapes = append(c.shapes, shape{n, start, c.base.Now()})
		}
	}
}

// Place judges a member's position in the global log (N1, N2). base is the snapshot that its state came from, and
// added is its progress in an instance.
func (c *Court) Place(member protocol.MemberID, at, base *order.Cursor,
	added func(protocol.InstanceID) protocol.Index) error {
	if !c.rules.Merged {
		return nil
	}
	cut := check.Cut{Round: uint64(at.Next.Round), Instance: uint64(at.Next.Instance), Position: uint64(at.Position)}
	var has, after []uint64
	for _, p := range at.Points {
		cut.Instances, cut.Points = append(cut.Instances, uint64(p.Instance)), append(cut.Points, uint64(p.Index))
		has = append(has, uint64(added(p.Instance)))
		after = append(after, uint64(base.Point(p.Instance).Round))
	}
	c.Settle()
	if p := c.PlaceOf(at); c.Executed.Compare(p) < 0 {
		c.Executed = p
	}
	return c.Weave.Member(uint64(member), has, after, cut)
}

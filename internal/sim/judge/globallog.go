package judge

import (
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// shape is the number of instances from a position in the global log on, and the time at which the first member
// reached it.
type shape struct {
	instances int
	round     protocol.Round
	at        time.Duration
}

// Reached records that a member has applied the global log up to a round. It may pass several changes of the number
// of instances at once.
func (c *Court) Reached(round protocol.Round) {
	for n, start := range c.Weave.Shapes() {
		if last := c.shapes[len(c.shapes)-1]; start > uint64(last.round) && start <= uint64(round) && n != last.instances {
			c.shapes = append(c.shapes, shape{n, protocol.Round(start), c.base.Now()})
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
	if c.Executed.Compare(at.Next) < 0 {
		c.Executed = at.Next
	}
	return c.Weave.Member(uint64(member), has, after, cut)
}

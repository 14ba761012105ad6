package conformance

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// The cluster in memory is one instance. The effects of other instances on it, when several are merged into one log,
// are simulated here: they bring snapshots, lose leaders, and the first one's membership changes earlier.

// chaosMerged simulates the effects of other instances on this one.
func (net *Net) chaosMerged(d *dice) {
	n := d.node(net)
	if n.Core == nil {
		return
	}
	if d.roll(40) {
		net.ProposeSkip(n.ID, net.judge.rounds[n.Applied]+protocol.Round(d.rng.IntN(9)))
	}
	if d.roll(5) {
		net.Gift(n.ID, d.node(net).ID)
	}
	if leader := n.Core.Status().Leader; leader != 0 && d.roll(10) {
		net.Step(n.ID, protocol.Suspect{Member: leader})
	}
}

// another changes the first instance's members.
func (net *Net) another(d *dice) {
	last := net.first[len(net.first)-1]
	c := last.Clone()
	switch m := &c.Members[d.rng.IntN(len(c.Members))]; {
	case m.Learner:
		m.Learner = false
	case len(c.Members) > 3:
		c.Removed = append(c.Removed, m.ID)
		slices.Sort(c.Removed)
		gone := m.ID
		c.Members = slices.DeleteFunc(c.Members, func(x protocol.Member) bool { return x.ID == gone })
	case len(net.Nodes) < 9:
		net.Add(d.next, protocol.Config{})
		c.Members = append(c.Members, protocol.Member{ID: d.next, Learner: d.rng.IntN(2) == 0, Slot: uint8(c.Slots)})
		c.Slots++
		d.next++
	}
	net.first = append(net.first, c)
}

// chaosFollow has the leader follow the first instance, or another member's view of it. The first instance changes
// again when this one has followed.
func (net *Net) chaosFollow(d *dice, l *Node) {
	if len(net.first) == 0 {
		net.first = append(net.first, net.judge.config)
	}
	if last := &net.first[len(net.first)-1]; last.SameMembers(&net.judge.config) {
		net.another(d)
	}
	back := min(d.rng.IntN(3), len(net.first)-1)
	net.Follow(l.ID, net.first[len(net.first)-1-back].Clone())
}

// followed checks a committed configuration: its members are those of the first instance at some time, no earlier
// than those before it. Its voters may join here first.
func (j *judge) followed(c *protocol.Config, first []protocol.Config) {
	settled := c.Clone()
	settled.Outgoing = nil
	for i := j.at; i < len(first); i++ {
		joined := settled.Clone()
		for k := range joined.Members {
			m := &joined.Members[k]
			if there := first[i].Find(m.ID); m.Joining && there != nil && !there.Learner {
				m.Learner, m.Joining = false, false
			}
		}
		if joined.SameMembers(&first[i]) {
			j.at = i
			return
		}
	}
	j.t.Fatalf("committed %s, slots %d, which the first instance never had after %d changes", DescribeConfig(c), c.Slots,
		j.at)
}

// catchUp makes the instance follow to the end.
func (net *Net) catchUp() {
	if len(net.first) == 0 {
		return
	}
	target, tries := &net.first[len(net.first)-1], 0
	net.Until("the members of the first instance", func() bool {
		if l := net.Leader(); l != nil && tries%20 == 0 {
			net.Follow(l.ID, target.Clone())
		}
		tries++
		return target.SameMembers(&net.judge.config)
	})
}

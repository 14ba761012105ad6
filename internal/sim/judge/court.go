package judge

import (
	"errors"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// Rules are what judges must know of a run's settings.
type Rules struct {
	Core *protocol.Info
	// Instances is how many instances there are at first; 0: one, whose log is the global log. Woven: the global log is
	// merged from theirs, even if there is only one.
	Instances int
	Woven     bool
	// First is the membership that the cluster begins with.
	First protocol.Config
	// Quorums decide where an entry is, and BodyQuorums where a body is.
	Quorums, BodyQuorums check.Quorums
}

// Court is the judges of a run.
type Court struct {
	// All judge the instances, in the order in which the instances were first heard of.
	All []*Instance
	// First judges the first instance, whose membership is the cluster's.
	First *Instance
	Weave *check.Merge
	// Executed is the slot up to which the member that is furthest has applied the global log.
	Executed order.Slot

	rules  Rules
	base   *world.Base
	shapes []shape                   // from how many instances the global log was merged, one after the other
	met    map[protocol.Index]uint64 // what snapshots at an index have
}

// NewCourt returns the judges of a run in which nothing has happened yet.
func NewCourt(rules Rules, base *world.Base) *Court {
	c := &Court{rules: rules, base: base, Weave: check.NewMerge(rules.Instances), met: map[protocol.Index]uint64{}}
	c.First, c.shapes = c.Of(protocol.FirstInstance), []shape{{instances: max(1, rules.Instances)}}
	return c
}

// Find returns the judges of an instance, or nil if there are none yet.
func (c *Court) Find(instance protocol.InstanceID) *Instance {
	for _, j := range c.All {
		if j.ID == instance {
			return j
		}
	}
	return nil
}

// Of returns the judges of an instance, and makes them if there are none yet.
func (c *Court) Of(instance protocol.InstanceID) *Instance { return c.With(instance, &c.rules.First) }

// With is Of for an instance with these first members. It uses them only if there are no judges yet.
func (c *Court) With(instance protocol.InstanceID, first *protocol.Config) *Instance {
	if j := c.Find(instance); j != nil {
		return j
	}
	judged := c.rules.Core.Judged
	j := &Instance{
		ID: instance, Ledger: check.NewLedger(), Bodies: check.NewBodies(erasure.Cut),
		Left: map[protocol.MemberID]bool{}, Led: map[protocol.MemberID]bool{}, sections: map[protocol.Index]string{},
	}
	j.Ledger.Hints, j.Ledger.Epochs, j.Ledger.Apart = judged.DecidedOnly, judged.ManyLead, judged.ByKey
	j.Bodies.Appends = j.Ledger.Hints
	j.Ledger.Quorums = c.rules.Quorums
	j.Bodies.Flexible(c.rules.BodyQuorums)
	c.base.Violate(0, j.Bodies.Configure(VotersOf(first), firstSlots(first)))
	j.leave(first, c.base.Now())
	c.All = append(c.All, j)
	return j
}

// Check judges the bodies of all instances, after any event.
func (c *Court) Check() {
	for _, j := range c.All {
		c.base.Violate(0, j.Bodies.Check())
	}
}

// Configure notes a decided membership of an instance. Retired instances obey the first one.
func (c *Court) Configure(j *Instance, config *protocol.Config) error {
	j.leave(config, c.base.Now())
	if j.Ended {
		return nil
	}
	return errors.Join(j.Bodies.Configure(VotersOf(config), firstSlots(config)), c.configureEnded(j))
}

// End notes that an instance is retired. Nobody needs the bodies of its void entries.
func (c *Court) End(j *Instance) error {
	j.Ended, j.last = true, c.Weave.End(uint64(j.ID))
	for _, i := range j.Bodies.Live() {
		if i > j.last {
			j.Bodies.Drop(i)
		}
	}
	return c.configureEnded(c.First)
}

// configureEnded tells the judges of retired instances which membership the first instance has
// decided, if these are the first instance's judges. A retired instance changes no more: members keep
// its bodies as the first instance says.
func (c *Court) configureEnded(by *Instance) (err error) {
	if by != c.First {
		return nil
	}
	config := by.Last()
	for _, j := range c.All {
		if j.Ended {
			err = errors.Join(err, j.Bodies.Configure(VotersOf(config), firstSlots(config)))
		}
	}
	return err
}

// firstSlots are the rows' slots of a configuration's members.
func firstSlots(c *protocol.Config) map[uint64]uint8 {
	slots := map[uint64]uint8{}
	for i := range c.Members {
		slots[uint64(c.Members[i].ID)] = c.Members[i].Slot
	}
	return slots
}

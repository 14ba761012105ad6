package judge

import (
	"errors"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// Rules are the settings of a run that judges need.
type Rules struct {
	// Of returns the rules of the instances that begin under a profile.
	Of func(*protocol.Profile) InstanceRules
	// Instances is the initial number of instances; 0: one, whose log is the global log. Merged: the global log is merged
	// from theirs, even if there is only one.
	Instances int
	Merged    bool
	// Single: it begins without rounds.
	Single bool
	// First is the cluster's initial membership.
	First protocol.Config
}

// InstanceRules are those of one instance.
type InstanceRules struct {
	Core *protocol.Info
	// Quorums are those for entries, and BodyQuorums those for bodies.
	Quorums, BodyQuorums check.Quorums
}

// Court has the judges of a run.
type Court struct {
	// All judge the instances, in the order of their first events.
	All []*Instance
	// First judges the first instance, whose membership is the cluster's.
	First *Instance
	Weave *check.Merge
	// Profiles judges the settings that members share, as the first instance decides them.
	Profiles *check.Profiles
	// Fits judges the changes of fitters.
	Fits Fits
	// Executed is the last place up to which any member has applied the global log.
	Executed Place

	rules  Rules
	base   *world.Base
	firsts []*Instance               // the first instances: a seal that counts adds one
	shapes []shape                   // the numbers of instances from which the global log was merged, in order
	met    map[protocol.Index]uint64 // digests of snapshots at an index
	// counted are the seals whose verdict is that they count, while Settle runs.
	counted []counted
}

// NewCourt returns the judges of a run in which nothing has happened yet.
func NewCourt(rules Rules, base *world.Base) *Court {
	c := &Court{
		rules: rules, base: base, Weave: check.NewMerge(max(1, rules.Instances), rules.Single || rules.Instances == 0),
		met: map[protocol.Index]uint64{},
	}
	c.Profiles = check.NewProfiles(rules.First.Profile.Version, textOf(&rules.First.Profile))
	c.begin(c.Of(protocol.FirstInstance))
	c.shapes = []shape{{instances: max(1, rules.Instances)}}
	return c
}

// Find returns the judge of an instance, or nil if there is none yet.
func (c *Court) Find(instance protocol.InstanceID) *Instance {
	for _, j := range c.All {
		if j.ID == instance {
			return j
		}
	}
	return nil
}

// Of returns the judge of an instance, and creates it if there is none yet.
func (c *Court) Of(instance protocol.InstanceID) *Instance { return c.With(instance, &c.rules.First) }

// With is Of for an instance with this first membership. It uses that only if there is no judge yet.
func (c *Court) With(instance protocol.InstanceID, first *protocol.Config) *Instance {
	if j := c.Find(instance); j != nil {
		return j
	}
	c.Settle()
	if j := c.Find(instance); j != nil {
		return j
	}
	rules := c.rules.Of(&first.Profile)
	judged := rules.Core.Judged
	j := &Instance{
		ID: instance, Core: rules.Core, Ledger: check.NewLedger(), Bodies: check.NewBodies(erasure.Cut),
		Left: map[protocol.MemberID]bool{}, Led: map[protocol.MemberID]bool{}, sections: map[protocol.Index]string{},
		lives: map[protocol.Term]int{},
	}
	j.Ledger.Hints, j.Ledger.Epochs, j.Ledger.Apart = judged.DecidedOnly, judged.ManyLead, judged.ByKey
	j.Bodies.Appends = j.Ledger.Hints
	j.Ledger.Quorums = rules.Quorums
	j.Bodies.Flexible(rules.BodyQuorums)
	c.base.Violate(0, j.Bodies.Configure(VotersOf(first), firstSlots(first)))
	j.leave(first, c.base.Now())
	c.All = append(c.All, j)
	return j
}

// begin makes an instance the first one.
func (c *Court) begin(j *Instance) { c.First, c.firsts = j, append(c.firsts, j) }

// Check judges the bodies of all instances, after any event.
func (c *Court) Check() {
	for _, j := range c.All {
		c.base.Violate(0, j.Bodies.Check())
	}
}

// Configure records a decided membership of an instance. Retired instances follow the first one.
func (c *Court) Configure(j *Instance, config *protocol.Config) error {
	j.leave(config, c.base.Now())
	if j.Ended {
		return nil
	}
	return errors.Join(c.decideProfile(j, &config.Profile), j.Bodies.Configure(VotersOf(config), firstSlots(config)),
		c.configureEnded(j))
}

// End records that an instance is retired. The bodies of its void entries are not needed.
func (c *Court) End(j *Instance) error {
	c.end(j)
	return c.configureEnded(c.First)
}

func (c *Court) end(j *Instance) {
	j.Ended, j.last = true, c.Weave.End(uint64(j.ID))
	for _, i := range j.Bodies.Live() {
		if i > j.last {
			j.Bodies.Drop(i)
		}
	}
}

// configureEnded passes a membership that the first instance has decided to the judges of retired instances. A
// retired instance decides no more: members keep its bodies according to the first instance's membership.
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

// firstSlots returns the slots of rows for a configuration's members.
func firstSlots(c *protocol.Config) map[uint64]uint8 {
	slots := map[uint64]uint8{}
	for i := range c.Members {
		slots[uint64(c.Members[i].ID)] = c.Members[i].Slot
	}
	return slots
}

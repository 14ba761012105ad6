package judge

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/protocol"
)

// Seals: the log continues in other instances, perhaps with another core. The court decides by itself which seals count
// and where, from what the instances decide.

// counted is a seal that counts.
type counted struct {
	seal protocol.Seal
	ends []uint64        // the instances that it ends
	at   protocol.Config // of the first one of them, where it counts
}

// Order records the effect of an entry that an instance decides in the global log.
func (c *Court) Order(j *Instance, e *protocol.Entry) error {
	c.Settle() // with the memberships up to the entry before
	slot := SlotOf(e)
	if e.Kind == protocol.EntrySeal {
		seal, err := protocol.DecodeSeal(e.Payload)
		if err != nil {
			return err
		}
		slot.Seal = &check.Seal{Instances: seal.Instances, Merged: seal.Merged, End: uint64(e.SealedAt()),
			Counts: func(instances, points []uint64) bool { return c.counts(&seal, instances, points) }}
	}
	c.Weave.Decide(uint64(j.ID), slot)
	return nil
}

// counts is the verdict of a seal where the instances have these last entries.
func (c *Court) counts(s *protocol.Seal, instances, points []uint64) bool {
	var configs []protocol.Config
	for i, id := range instances {
		configs = append(configs, *c.Of(protocol.InstanceID(id)).configAt(points[i]))
	}
	if !s.Counts(configs) {
		return false
	}
	c.counted = append(c.counted, counted{*s, instances, configs[0]})
	return true
}

// Settle records the seals that count, as far as that is known.
func (c *Court) Settle() {
	parts, seals := c.Weave.Settle(), c.counted
	c.counted = nil
	for i, part := range parts {
		c.base.Violate(0, c.sealed(&seals[i], part.Instances()))
	}
}

// sealed ends the instances before a seal that counts, and begins those behind it.
func (c *Court) sealed(s *counted, begins []uint64) error {
	for _, id := range s.ends {
		j := c.Of(protocol.InstanceID(id))
		j.closes = true
		c.end(j)
	}
	first := s.seal.Begin(&s.at)
	for i, id := range begins {
		j := c.With(protocol.InstanceID(id), &first)
		if j.sealed, j.profile = true, first.Profile.Version; i == 0 {
			c.begin(j)
		}
	}
	return errors.Join(c.Profiles.Decide(first.Profile.Version, textOf(&first.Profile)), c.configureEnded(c.First))
}

// Sealed reports whether the instance begins behind a seal.
func (j *Instance) Sealed() bool { return j.sealed }

// Closes reports whether a seal that counts ends the instance. No member takes part in it behind that. Instances that
// were retired before the seal still send the rest of their logs.
func (j *Instance) Closes() bool { return j.closes }

// Begins judges the base of an instance behind a seal on a member: at its beginning all have the membership and the
// profile that the seal says.
func (j *Instance) Begins(base *protocol.Base) error {
	first := &j.Configs[0].Config
	if !j.sealed && base.Index == 0 && len(base.Config.Members) > 0 {
		j.founded = &base.Config
	}
	if !j.sealed || base.Index > 0 || base.Config.SameMembers(first) {
		return nil
	}
	return fmt.Errorf("P8: instance %d begins with members %v and version %d of the profile, elsewhere with %v and %d",
		j.ID, base.Config.All(), base.Config.Profile.Version, first.All(), first.Profile.Version)
}

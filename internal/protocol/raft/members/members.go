package members

import (
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Configs are the configurations that a member's log has.
type Configs struct {
	// all are the configurations active from an index on: the base's, and one for each configuration
	// entry in the log, ascending. Never empty; the last is active.
	all []config
	// Config is the last of all, At the index of its entry, and Voters decide under it.
	Config *protocol.Config
	At     protocol.Index
	Voters quorum.Set
	// Changes counts how often another configuration became active. Its entry may have the index of the one before.
	Changes uint64
	// Seat is the place of this instance among those active, from 0; see protocol.Place.
	Seat int
	// Others are the members that other instances have, ascending; see protocol.Retain.
	Others []protocol.MemberID

	// Settings are those under the active profile. They are replaced, not changed.
	Settings *protocol.Settings

	settings *protocol.Settings
	born     protocol.Settings // what the member was started with
	own      setting.Table     // the settings that only Raft has
}

type config struct {
	index    protocol.Index
	config   protocol.Config
	settings *protocol.Settings
}

// Start makes the configurations of a log that begins after a base. It keeps the settings, which it only reads, and
// which are complete. The error is a [*protocol.ProfileError].
func Start(base *protocol.Base, s *protocol.Settings, own setting.Table) (Configs, error) {
	c := Configs{settings: s, born: *s, own: own, Seat: int(s.Instance) - 1}
	return c, c.Append(base.Index, base.Config.Clone())
}

// Append makes the configuration of an entry active that was just appended, unless its profile is not usable. The
// error is a [*protocol.ProfileError].
func (c *Configs) Append(at protocol.Index, next protocol.Config) error {
	s, err := c.tuned(&next.Profile)
	if err != nil {
		return err
	}
	c.all = append(c.all, config{at, next, s})
	c.Changes++
	c.activate()
	return nil
}

// Cut removes the configurations of entries from an index on, and reports whether there were any.
func (c *Configs) Cut(from protocol.Index) bool {
	n := len(c.all)
	for n > 1 && c.all[n-1].index >= from {
		n--
	}
	if n == len(c.all) {
		return false
	}
	c.all = c.all[:n]
	c.Changes++
	c.activate()
	return true
}

// Compact forgets the configurations before the one that is active at an index.
func (c *Configs) Compact(to protocol.Index) {
	n := 0
	for n+1 < len(c.all) && c.all[n+1].index <= to {
		n++
	}
	c.all = append(c.all[:0], c.all[n:]...)
	c.activate()
}

// Install starts again after a base, whose configuration it keeps, unless its profile is not usable. The error is a
// [*protocol.ProfileError].
func (c *Configs) Install(base *protocol.Base) error {
	s, err := c.tuned(&base.Config.Profile)
	if err != nil {
		return err
	}
	c.all = append(c.all[:0], config{base.Index, base.Config, s})
	c.Changes++
	c.activate()
	return nil
}

func (c *Configs) activate() {
	last := &c.all[len(c.all)-1]
	c.Config, c.At, c.Settings = &last.config, last.index, last.settings
	c.Voters = quorum.Of(c.Config)
	c.Voters.Need = c.settings.ReadQuorum
}

// Deciders are the voters that elect a leader.
func (c *Configs) Deciders() quorum.Set {
	if c.settings.Mutant == MutantSingleQuorumJoint {
		return quorum.Set{Incoming: c.Voters.Incoming}
	}
	return c.Voters
}

// Writers are the voters that commit, and how many of them are needed.
func (c *Configs) Writers() quorum.Set {
	s := c.Deciders()
	s.Need = c.settings.WriteQuorum
	return s
}

// Confirmers are those of a set that confirm that a leader still leads: every quorum that elects another one includes
// one of them.
func (c *Configs) Confirmers(s quorum.Set) quorum.Set {
	if c.settings.ReadQuorum > 0 {
		s.Need = len(s.Incoming) - c.settings.ReadQuorum + 1
	}
	return s
}

// Electorate are the voters of the last configuration up to an index.
func (c *Configs) Electorate(at protocol.Index) quorum.Set {
	n := len(c.all) - 1
	for n > 0 && c.all[n].index > at {
		n--
	}
	return quorum.Of(&c.all[n].config)
}

// Before is the configuration before the active one, nil if it is not known.
func (c *Configs) Before() *protocol.Config {
	if n := len(c.all); n > 1 {
		return &c.all[n-2].config
	}
	return nil
}

// Slot is the row for a member. One that is leaving has its slot in an older configuration.
func (c *Configs) Slot(id protocol.MemberID) (row uint8, ok bool) {
	for k := len(c.all) - 1; k >= 0; k-- {
		if c := &c.all[k].config; c.Slots > 0 {
			if m := c.Find(id); m != nil {
				return m.Slot, true
			}
		}
	}
	return 0, false
}

// Alone reports whether a member decides on its own.
func (c *Configs) Alone(id protocol.MemberID) bool {
	return !c.Config.Joint() && len(c.Voters.Incoming) == 1 && c.Voters.Incoming[0] == id
}

// Remains reports whether a member votes in the configuration that will remain.
func (c *Configs) Remains(id protocol.MemberID) bool {
	m := c.Config.Find(id)
	return m != nil && !m.Learner
}

// Removed reports whether a member was removed forever, as far as is known with what is committed.
func (c *Configs) Removed(id protocol.MemberID, commit protocol.Index) bool {
	return c.At <= commit && slices.Contains(c.Config.Removed, id)
}

// Retains reports whether another instance has a member that is removed from this one.
func (c *Configs) Retains(id protocol.MemberID) bool {
	if !slices.Contains(c.Config.Removed, id) || slices.Contains(c.Config.Outgoing, id) {
		return false
	}
	_, has := slices.BinarySearch(c.Others, id)
	return has
}

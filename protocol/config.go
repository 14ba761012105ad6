package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Member is a process of the cluster, as recorded in the log.
type Member struct {
	ID   MemberID `json:"id"`
	Name string   `json:"name,omitempty"`
	// PeerURLs and ClientURLs are addresses, as etcd writes them (http://127.0.0.1:2380).
	PeerURLs   []string `json:"peerURLs,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	// Zone is where the member is, as in eu-west-1: see [CheckZone]; "": not known. Quorums may depend on it (package
	// quorum).
	Zone string `json:"zone,omitempty"`
	// Log is the identity of the member's log, once the cluster has recorded it. It never changes after that.
	Log LogID `json:"log,omitzero"`
	// Learner receives the log but neither votes nor counts for commitment.
	Learner bool `json:"learner,omitempty"`
	// Joining: the learner was added as a voter. It becomes one on its own once it is caught up, and
	// until then nothing waits for it. Only with Learner.
	Joining bool `json:"joining,omitempty"`
	// Slot is the row of coded bodies that this member holds. It is unique in the cluster's history.
	Slot uint8 `json:"slot,omitempty"`
	// WholeAbove: this member holds whole every body with a k above this number (docs/internals/craft.md,
	// 2.7, restriping). 0: it holds its row of every body.
	WholeAbove uint8 `json:"wholeAbove,omitempty"`
}

// Config is a membership: the replicas and the voters. An entry of kind EntryConfig has all of it. The protocol
// determines when it becomes active: in Raft as soon as it is in a member's log (Raft §4).
type Config struct {
	// Members is sorted by id, without duplicates.
	Members []Member `json:"members"`
	// Outgoing are the voters of the configuration being left, sorted; nil unless joint.
	// While joint, every decision needs a quorum of the voters among Members and a
	// quorum of Outgoing.
	Outgoing []MemberID `json:"outgoing,omitempty"`
	// Removed are the ids of removed members, which are never used again, sorted.
	Removed []MemberID `json:"removed,omitempty"`
	// Slots is the lowest slot that was never assigned; ≤ [Rows].
	Slots int `json:"slots,omitempty"`
	// Restripes counts the configurations that changed what members hold whole. A member reports by this number which
	// one it follows.
	Restripes uint32 `json:"restripes,omitempty"`
	// Lineage distinguishes the log from every other log, even from one of a cluster with the same id: a random number,
	// 0 until the first leader has chosen it. It never changes after that. Only the first instance's counts.
	Lineage uint64 `json:"lineage,omitempty"`
	// Format is the format in which members write once they have applied the configuration (package internal/format);
	// 0: the first one. It never decreases. Only the first instance's counts.
	Format int `json:"format,omitempty"`
	// Profile are the settings that the members share.
	Profile Profile `json:"profile,omitzero"`
}

// HoldWhole makes the members that keep selects hold whole every body with more than k fragments. All others hold
// their rows; with k = 0 all hold rows. It reports whether anything changed.
func (c *Config) HoldWhole(k uint8, keep func(MemberID) bool) bool {
	changed := false
	for i := range c.Members {
		m := &c.Members[i]
		want := k
		if !keep(m.ID) {
			want = 0
		}
		changed = changed || m.WholeAbove != want
		m.WholeAbove = want
	}
	if changed {
		c.Restripes++
	}
	return changed
}

// MaxRows is the largest k of bodies that all members hold as rows; 0 if there is no limit.
func (c *Config) MaxRows() (k uint8) {
	for i := range c.Members {
		if w := c.Members[i].WholeAbove; w > 0 && (k == 0 || w < k) {
			k = w
		}
	}
	return k
}

// Voters returns the ids of the incoming voters, sorted.
func (c *Config) Voters() []MemberID { return c.ids(func(m *Member) bool { return !m.Learner }) }

// All returns every id that must receive the log: members, and outgoing voters while joint.
func (c *Config) All() []MemberID {
	ids := c.ids(func(*Member) bool { return true })
	for _, id := range c.Outgoing {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (c *Config) ids(keep func(*Member) bool) []MemberID {
	ids := make([]MemberID, 0, len(c.Members))
	for i := range c.Members {
		if keep(&c.Members[i]) {
			ids = append(ids, c.Members[i].ID)
		}
	}
	return ids
}

// Joint reports whether two sets of voters decide together: a joint configuration.
func (c *Config) Joint() bool { return len(c.Outgoing) > 0 }

// HasOthers reports whether there are other members than this one.
func (c *Config) HasOthers(self MemberID) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.ID != self })
}

// Find returns the member with that id, or nil.
func (c *Config) Find(id MemberID) *Member {
	i, ok := slices.BinarySearchFunc(c.Members, id, func(m Member, id MemberID) int {
		switch {
		case m.ID < id:
			return -1
		case m.ID > id:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &c.Members[i]
}

// Amend replaces the member's name, addresses and zone by those that o sets, and leaves the rest. So two changes of
// different fields at the same time do not undo each other. The identity of its log is set if there was none, and
// never changes after that.
func (m *Member) Amend(o *Member) {
	if m.Log.IsZero() {
		m.Log = o.Log
	}
	if o.Name != "" {
		m.Name = o.Name
	}
	if o.PeerURLs != nil {
		m.PeerURLs = slices.Clone(o.PeerURLs)
	}
	if o.ClientURLs != nil {
		m.ClientURLs = slices.Clone(o.ClientURLs)
	}
	if o.Zone != "" {
		m.Zone = o.Zone
	}
}

// Amended reports whether the member has the name, addresses and zone that o sets.
func (m *Member) Amended(o *Member) bool {
	return (o.Name == "" || m.Name == o.Name) && (o.Zone == "" || m.Zone == o.Zone) &&
		(o.PeerURLs == nil || slices.Equal(m.PeerURLs, o.PeerURLs)) &&
		(o.ClientURLs == nil || slices.Equal(m.ClientURLs, o.ClientURLs)) && (o.Log.IsZero() || m.Log == o.Log)
}

// PeerURLTaken reports whether the changes that led to c gave a member a peer URL that another
// member has. Members that have shared a URL since before these changes are not reported.
func (c *Config) PeerURLTaken(changes []Change) bool {
	for i := range changes {
		given := &changes[i].Member
		taken := func(m Member) bool {
			return m.ID != given.ID && slices.ContainsFunc(m.PeerURLs, func(url string) bool {
				return slices.Contains(given.PeerURLs, url)
			})
		}
		if changes[i].Kind != RemoveMember && slices.ContainsFunc(c.Members, taken) {
			return true
		}
	}
	return false
}

// Voter reports whether id votes, in the incoming or the outgoing configuration.
func (c *Config) Voter(id MemberID) bool {
	m := c.Find(id)
	return m != nil && !m.Learner || slices.Contains(c.Outgoing, id)
}

// Number gives the members slots in their order if the configuration has none yet. No body was
// coded under such a configuration.
func (c *Config) Number() {
	if c.Slots > 0 || len(c.Members) > Rows {
		return
	}
	for i := range c.Members {
		c.Members[i].Slot = uint8(i)
	}
	c.Slots = len(c.Members)
}

// Joins returns the changes so that a member that is added as a voter joins first. Otherwise a cluster that adds a
// member with a mistyped address would wait for that member's vote, and a cluster of one could not even remove it
// again (docs/internals/raft.md, "Membership").
func (c *Config) Joins(changes []Change) []Change {
	out := slices.Clone(changes)
	for i := range out {
		switch known := c.Find(out[i].Member.ID) != nil; {
		case out[i].Kind == AddVoter && !known:
			out[i].Kind = AddJoining
		case out[i].Kind == AddJoining && known:
			out[i].Kind = AddVoter
		}
	}
	return out
}

// Clone returns a copy that shares nothing with c.
func (c *Config) Clone() Config {
	out := Config{Members: slices.Clone(c.Members), Outgoing: slices.Clone(c.Outgoing), Removed: slices.Clone(c.Removed),
		Slots: c.Slots, Restripes: c.Restripes, Lineage: c.Lineage, Format: c.Format, Profile: c.Profile}
	out.Profile.Earlier = slices.Clone(c.Profile.Earlier)
	for i := range out.Members {
		out.Members[i].PeerURLs = slices.Clone(out.Members[i].PeerURLs)
		out.Members[i].ClientURLs = slices.Clone(out.Members[i].ClientURLs)
	}
	return out
}

// Equal reports whether two configurations are equal.
func (c *Config) Equal(o *Config) bool {
	return c.Restripes == o.Restripes && c.Lineage == o.Lineage && c.Format == o.Format && c.SameMembers(o) &&
		slices.EqualFunc(c.Members, o.Members, func(a, b Member) bool { return a.WholeAbove == b.WholeAbove })
}

// Validate reports what is wrong with a configuration; nil if it may be in a log.
func (c *Config) Validate() error {
	for i := range c.Members {
		m := &c.Members[i]
		switch {
		case m.ID == 0:
			return fmt.Errorf("config: member %q has no id", m.Name)
		case i > 0 && c.Members[i-1].ID >= m.ID:
			return fmt.Errorf("config: members not sorted at %s", m.ID)
		case m.Joining && !m.Learner:
			return fmt.Errorf("config: member %s is a voter, and joining", m.ID)
		case slices.Contains(c.Removed, m.ID):
			return fmt.Errorf("config: member %s was removed earlier", m.ID)
		case CheckZone(m.Zone) != nil:
			return fmt.Errorf("config: member %s: %w", m.ID, CheckZone(m.Zone))
		}
	}
	if len(c.Voters()) == 0 {
		return fmt.Errorf("config: no voters")
	}
	return c.validateSlots()
}

// validateSlots checks that slots are distinct: a body is joined from distinct rows only.
func (c *Config) validateSlots() error {
	if c.Slots > Rows {
		return fmt.Errorf("config: %d slots, there are %d", c.Slots, Rows)
	}
	var taken [Rows]bool
	for i := 0; i < len(c.Members) && c.Slots > 0; i++ {
		m := &c.Members[i]
		if int(m.Slot) >= c.Slots || taken[m.Slot] {
			return fmt.Errorf("config: slot %d of member %s is another's or was never given", m.Slot, m.ID)
		}
		taken[m.Slot] = true
	}
	return nil
}

// EncodeConfig returns the payload of an EntryConfig. Configurations are rare and short;
// JSON keeps them readable in a log inspector.
func EncodeConfig(c Config) []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers only: cannot fail
	}
	return b
}

// DecodeConfig reads the payload of an EntryConfig.
func DecodeConfig(b []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(b, &c); err != nil {
		return c, &CorruptError{What: "config", Detail: err.Error()}
	}
	return c, c.Validate()
}

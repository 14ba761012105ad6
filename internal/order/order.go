package order

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Order merges instances into the global log. It is a deterministic function of the
// entries committed in each instance. Not safe for concurrent use.
type Order interface {
	// Add adds entries that are committed in an instance. They continue the earlier ones of this instance, or repeat
	// them. Entries that are repeated, or covered by a snapshot, are ignored. Add panics on a gap: that is a bug in the
	// protocol, which must not reach the state machine.
	Add(instance protocol.InstanceID, entries []protocol.Entry)
	// Next appends to out the entries whose place in the global log is now known, in
	// the order of the global log, and forgets them.
	Next(out []Placed) []Placed
	// Sealing is the seal at whose place the order stands; nil: it stands at none. Next returns nothing more until Seal
	// has told whether the seal counts there: see protocol.Seal.Counts. Seal returns the place of one that does, and
	// nil for one that does not.
	Sealing() *OpenSeal
	Seal(counts bool) *Placed
	// Added is the index of the last entry of an instance that was added or that a snapshot
	// covers.
	Added(instance protocol.InstanceID) protocol.Index
	// Placed is the index up to which all that an instance orders has its place in the global log. Skips that come next
	// are taken in, as they order nothing.
	Placed(instance protocol.InstanceID) protocol.Index
	// Cursor is the place after the last entry that Next returned.
	Cursor() Cursor
	// Install continues after the cursor of a snapshot. Added entries after its points are kept. A
	// cursor that is not ahead changes nothing.
	Install(to Cursor)
	// Check verifies the invariants.
	Check() error
}

// New returns the order that continues at a cursor. Instances are merged into one log, or are groups with an order of
// their own each.
func New(from Cursor) Order {
	if from.Keyed {
		return newKeyed(from)
	}
	return NewNiagara(from)
}

// Placed is an entry with its place in the global log.
type Placed struct {
	Instance protocol.InstanceID
	// First is the position of the entry's first command; the entry covers
	// Entry.Width() positions from there. In a keyed order it is the position in the instance's group.
	First protocol.Position
	Entry protocol.Entry
	// Plan is set where an EntryReshape or an EntrySeal takes effect.
	Plan *Plan
}

// Slot is the place of an instance in a round of the global log. Slots are ordered by
// round, then by instance.
type Slot struct {
	Round    protocol.Round      `json:"round"`
	Instance protocol.InstanceID `json:"instance"`
}

// Compare orders slots as the global log does.
func (s Slot) Compare(o Slot) int {
	return cmp.Or(cmp.Compare(s.Round, o.Round), cmp.Compare(s.Instance, o.Instance))
}

// Cursor is a place in the global log, with the corresponding place in each instance's log. Order and state machine
// resume from it.
type Cursor struct {
	Position protocol.Position `json:"position"`
	// Next is the next slot; zero if there are no rounds: see [Cursor.Merged].
	Next Slot `json:"turn,omitzero"`
	// Points has one for each active instance, ascending by instance.
	Points []Point `json:"points"`
	// Reshape is the number of instances from the next round on; 0: as many as now.
	Reshape int `json:"reshape,omitempty"`
	// Fresh is the lowest instance id that was never used; 0 if there are no rounds. See [Cursor.Unused].
	Fresh protocol.InstanceID `json:"fresh,omitempty"`
	// Keyed: the instances are groups that share no keys, see [Keyed]. Position is then the sum of
	// the points' positions.
	Keyed bool `json:"keyed,omitempty"`
}

// Point is the last consumed entry of one instance.
type Point struct {
	Instance protocol.InstanceID `json:"instance"`
	Index    protocol.Index      `json:"index"`
	Term     protocol.Term       `json:"term"`
	// Round is the number of consumed rounds of the instance, perhaps with a part of the entry after Index, which skips
	// rounds.
	Round protocol.Round `json:"round,omitempty"`
	// Position is the last one of the instance's group; 0 if the order is not keyed.
	Position protocol.Position `json:"position,omitempty"`
}

// MaxInstances limits the instances.
const MaxInstances = protocol.MaxInstances

// Begin is the cursor of a new cluster with a given number of instances. merged: there are rounds, even with one
// instance.
func Begin(instances int, merged bool) Cursor {
	var c Cursor
	for i := range instances {
		c.Points = append(c.Points, Point{Instance: protocol.InstanceID(i + 1)})
	}
	if merged {
		c.Next = Slot{Round: 1, Instance: 1}
		c.Fresh = protocol.InstanceID(instances + 1)
	}
	return c
}

// BeginKeyed is the cursor of a new cluster with a given number of groups.
func BeginKeyed(groups int) Cursor {
	c := Begin(groups, false)
	c.Keyed = true
	return c
}

// Several reports whether there may be several instances.
func (c *Cursor) Several() bool { return c.Keyed || c.Merged() }

// Kind is the kind of the order.
func (c *Cursor) Kind() Kind {
	switch {
	case c.Keyed:
		return KindKeyed
	case c.Merged():
		return KindNiagara
	}
	return KindSingle
}

// Merged reports whether the global log is merged from instances round by round, even from one. It is not as long as
// one instance has been alone from the beginning on: its log is the global log then.
func (c *Cursor) Merged() bool { return c.Next != Slot{} }

// BeginsAlone reports whether an instance has no rounds before any that its base says, in a log that began at c. Those
// that begin later have the rounds before them in their bases: see begunRounds.
func (c *Cursor) BeginsAlone(instance protocol.InstanceID) bool {
	return !c.Merged() || !slices.Contains(c.Instances(), instance)
}

// Unused is the lowest instance id that was never used; 0: the order is keyed, and no instances begin.
func (c *Cursor) Unused() protocol.InstanceID {
	if c.Fresh == 0 && !c.Keyed && len(c.Points) > 0 {
		return c.Points[0].Instance + 1
	}
	return c.Fresh
}

// Before reports whether c is a shorter prefix of the same global log than d. In a keyed order it reports whether c
// is missing entries that d has. Then each of two cursors may be before the other.
func (c *Cursor) Before(d *Cursor) bool {
	if c.Keyed {
		return len(c.AheadIn(d)) > 0
	}
	if c.Position != d.Position {
		return c.Position < d.Position
	}
	// Other instances begin with a position. So both have the same ones, and only what covers no position is between.
	if order := c.Next.Compare(d.Next); order != 0 {
		return order < 0
	}
	// Within one slot the entries that fill no slot come first, so the index decides.
	next := c.Next.Instance
	if !c.Merged() {
		next = c.Points[0].Instance
	}
	return c.Point(next).Index < d.Point(next).Index
}

// Clone returns a copy that shares nothing with c.
func (c Cursor) Clone() Cursor {
	c.Points = slices.Clone(c.Points)
	return c
}

// Point returns the cursor's point in an instance; the zero Point if it has none.
func (c *Cursor) Point(instance protocol.InstanceID) Point {
	for _, p := range c.Points {
		if p.Instance == instance {
			return p
		}
	}
	return Point{Instance: instance}
}

// Retired reports whether an instance was active once and is not any more.
func (c *Cursor) Retired(instance protocol.InstanceID) bool {
	return instance < c.Unused() && !slices.Contains(c.Instances(), instance)
}

// Expects reports whether an instance may become active later: it was not yet, and only a limited number of instances
// begin at once.
func (c *Cursor) Expects(instance protocol.InstanceID) bool {
	unused := c.Unused()
	return unused > 0 && instance >= unused && instance-unused < MaxInstances
}

// Instances lists the active instances, ascending.
func (c *Cursor) Instances() []protocol.InstanceID {
	out := make([]protocol.InstanceID, len(c.Points))
	for i, p := range c.Points {
		out[i] = p.Instance
	}
	return out
}

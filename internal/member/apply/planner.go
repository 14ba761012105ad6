package apply

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Planner follows the global log ahead of the state machine, to find the plans in it: see order.Plan. It
// is given the envelopes of what the instances commit, as soon as they do, and runs the order over them.
// Apply runs the same order over the same entries later. So it comes to the same plans, and finds them
// carried out. The instances and Apply share a Planner, with the queue of Apply. Not safe for concurrent
// use.
//
// A snapshot stands for entries that no instance commits here. While one waits to be installed, no one knows what these
// are. So the Planner keeps what comes after it until it is installed. What was queued before it the Planner knows. So
// it is never behind Apply.
type Planner struct {
	order *order.Niagara
	// members are the memberships of the active instances at the order's cursor, in their order.
	members []protocol.Config
	shape   []protocol.InstanceID // active at the cursor, ascending
	// held is what came since a snapshot that waits to be installed, which is its first element; empty
	// if none waits.
	held []heldCommit
	// plans and void were found and not taken yet.
	plans []PlannedAt
	void  []VoidSeal

	placed []order.Placed   // buffers
	light  []protocol.Entry // of add
	Mutant mutant.Name      // weave-plan-early, seal-any-version, seal-first-members
}

// PlannedAt is a plan, and what is known of the instances at its place.
type PlannedAt struct {
	order.Plan
	// Meta has what is known of the instances at the place, and no sessions. New instances begin after
	// its bases.
	Meta member.Meta
}

// VoidSeal says that the seals up to an index, which their instance has decided, take no effect.
type VoidSeal struct {
	Instance protocol.InstanceID
	Index    protocol.Index
}

// heldCommit is what an instance committed, or a snapshot if it has no entries.
type heldCommit struct {
	instance protocol.InstanceID
	entries  []protocol.Entry
}

// NewPlanner returns a Planner that begins at a snapshot. It is nil if the order is keyed, because there are no plans
// then.
func NewPlanner(meta *member.Meta) *Planner {
	if meta.Cursor.Keyed {
		return nil
	}
	p := &Planner{order: order.NewNiagara(meta.Cursor.Clone())}
	p.follow(meta)
	return p
}

// follow takes the active instances and their memberships from a place in the log.
func (p *Planner) follow(meta *member.Meta) {
	p.shape, p.members = meta.Cursor.Instances(), nil
	for _, id := range p.shape {
		p.members = append(p.members, meta.Base(id).Config)
	}
}

// Committed takes in what an instance committed. Of a single instance it copies nothing.
func (p *Planner) Committed(instance protocol.InstanceID, entries []protocol.Entry) {
	if len(p.held) > 0 {
		p.held = append(p.held, heldCommit{instance, slices.Clone(p.envelopes(entries))})
		return
	}
	p.placed = p.placed[:0]
	rest, placed := p.order.Pass(instance, entries, p.placed)
	p.placed = placed
	p.read(p.placed)
	if len(rest) > 0 {
		p.add(instance, p.envelopes(rest))
	}
}

// envelopes are valid until the next call.
func (p *Planner) envelopes(entries []protocol.Entry) []protocol.Entry {
	p.light = p.light[:0]
	for i := range entries {
		p.light = append(p.light, envelope(&entries[i]))
	}
	return p.light
}

// envelope is what the order and a Planner need of an entry. It does not keep alive the memory in which
// the entry arrived.
func envelope(e *protocol.Entry) protocol.Entry {
	light := protocol.Entry{Index: e.Index, Term: e.Term, Kind: e.Kind, Count: e.Count, Low: e.Low}
	if e.Kind == protocol.EntryConfig || e.Kind == protocol.EntrySeal {
		light.Payload, light.Size = e.Payload, e.Size
	}
	return light
}

func (p *Planner) add(instance protocol.InstanceID, entries []protocol.Entry) {
	p.order.Add(instance, entries)
	if p.Mutant == member.MutantPlanEarly {
		p.early(entries)
	}
	p.place()
}

// place finds the plans of what the order gives out now.
func (p *Planner) place() {
	for {
		p.placed = p.order.Next(p.placed[:0])
		p.read(p.placed)
		s := p.order.Sealing()
		if s == nil {
			return
		}
		if sealed := p.order.Seal(verdict(&s.Seal, p.members, p.Mutant)); sealed != nil {
			p.plan(sealed.Plan)
		} else {
			p.void = append(p.void, VoidSeal{p.shape[0], s.Index})
		}
	}
}

// read takes plans and memberships from what is placed.
func (p *Planner) read(all []order.Placed) {
	for i := range all {
		switch placed := &all[i]; {
		case placed.Plan != nil:
			p.plan(placed.Plan)
		case placed.Entry.Kind == protocol.EntryConfig:
			at := slices.Index(p.shape, placed.Instance)
			if c, err := protocol.DecodeConfig(placed.Entry.Payload); err == nil && at >= 0 { // else Apply says so
				p.members[at] = c
			}
		}
	}
	clear(all)
}

// plan notes a plan, and goes to its instances.
func (p *Planner) plan(plan *order.Plan) {
	ids := plan.At.Instances()
	members := make([]protocol.Config, len(ids))
	for i, id := range ids {
		from := slices.Index(p.shape, id)
		if from < 0 {
			from = slices.Index(p.shape, plan.Members)
		}
		if members[i] = p.members[from].Clone(); plan.Seal != nil {
			members[i] = plan.Seal.Begin(&p.members[from])
		}
	}
	p.shape, p.members = ids, members
	p.note(*plan, p.meta(plan.At))
}

// meta is what is known of a place in the log, at which the Planner is.
func (p *Planner) meta(at order.Cursor) member.Meta {
	meta := member.Meta{Cursor: at, Config: p.members[0].Clone()}
	for i := range p.members[1:] {
		meta.Others = append(meta.Others, p.members[i+1].Clone())
	}
	return meta
}

func (p *Planner) note(plan order.Plan, at member.Meta) {
	if plan.Changes() {
		at.Sessions = nil
		p.plans = append(p.plans, PlannedAt{Plan: plan, Meta: at})
	}
}

// Installing says that a snapshot waits to be installed from now on. Installed is to follow.
func (p *Planner) Installing() { p.held = append(p.held, heldCommit{}) }

// Installed says that the snapshot that has waited longest was installed, so that Follow was told, or is not
// needed any more. What came up to the next snapshot is known again.
func (p *Planner) Installed() {
	p.held = p.held[1:]
	for len(p.held) > 0 && p.held[0].instance != 0 {
		p.add(p.held[0].instance, p.held[0].entries)
		p.held = p.held[1:]
	}
	if len(p.held) == 0 {
		p.held = nil
	}
}

// Follow goes to a snapshot, if that is ahead. The plan leads there from the active instances before.
func (p *Planner) Follow(installed *member.Meta) {
	if at := p.order.Cursor(); !at.Before(&installed.Cursor) {
		return
	}
	before := p.shape
	p.order.Install(installed.Cursor.Clone())
	p.follow(installed)
	if first := p.shape[0]; first == before[0] { // it went past seals that do not count
		p.void = append(p.void, VoidSeal{first, installed.Cursor.Point(first).Index})
	}
	p.note(*order.PlanTo(before, installed.Cursor.Clone()), *installed)
	p.place()
}

// Take takes out the plan that is to be carried out next; nil if there is none.
func (p *Planner) Take() *PlannedAt {
	if len(p.plans) == 0 {
		return nil
	}
	plan := &p.plans[0]
	p.plans = p.plans[1:]
	return plan
}

// TakeVoid takes out the seals that turned out to be void.
func (p *Planner) TakeVoid() []VoidSeal {
	void := p.void
	p.void = nil
	return void
}

// Found reports whether there are plans or void seals to be taken.
func (p *Planner) Found() bool { return len(p.plans)+len(p.void) > 0 }

// Position is where the Planner stands in the global log. Added is the last entry of an instance that it knows of.
func (p *Planner) Position() protocol.Position { return p.order.Cursor().Position }

func (p *Planner) Added(instance protocol.InstanceID) protocol.Index { return p.order.Added(instance) }

// Check verifies the invariants. at is where Apply stands.
func (p *Planner) Check(at *order.Cursor) error {
	mine := p.order.Cursor()
	if mine.Before(at) {
		return fmt.Errorf("planner: it is at round %d, Apply is at round %d", mine.Next.Round, at.Next.Round)
	}
	if !slices.Equal(p.shape, mine.Instances()) || len(p.members) != len(p.shape) {
		return fmt.Errorf("planner: %d memberships for instances %v, in force are %v", len(p.members), p.shape,
			mine.Instances())
	}
	return p.order.Check()
}

// Break breaks a rule on purpose. Of the order's own mutants it takes those of seals: a Planner that seals otherwise
// than Apply does would be found at once.
func (p *Planner) Break(m mutant.Name) {
	if p.Mutant = m; m == order.MutantNumberAgain || m == order.MutantSealPassed {
		p.order.Mutant = m
	}
}

// early makes, for a mutant, a plan of a change as soon as it is committed, wherever the global log is.
func (p *Planner) early(entries []protocol.Entry) {
	for i := range entries {
		if e := &entries[i]; e.Kind == protocol.EntryReshape {
			at := p.order.Cursor()
			at.Points = slices.Clone(at.Points[:min(len(at.Points), max(1, e.Instances()))])
			p.note(*order.PlanTo(p.shape, at), p.meta(at))
		}
	}
}

package apply

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Applied is what Apply lets others know: how far it has applied, and who waits for that. Apply,
// the instances and whoever asks share it. It is not safe for concurrent use.
type Applied struct {
	cursor order.Cursor
	// shape are the active instances. added says how much of each is in the order; everything that follows from that is
	// applied.
	shape   []protocol.InstanceID
	added   []protocol.Index
	backlog []int             // how many entries of each wait in the order
	configs []protocol.Config // of the active instances; the first is the cluster's
	// brought is the position of the state that was found at the start; 0: another state took its place.
	brought protocol.Position
	// stuck: the state is not what cursor and added say, and serves no read. See Applier.Stuck.
	stuck bool

	groups   intake.ReadGroups
	tokens   tokenReads
	changing []*ConfigWatch
}

// ConfigWatch waits until membership changes are in effect.
type ConfigWatch struct {
	changes []protocol.Change
	first   bool // only in the first instance
	// After is an entry of the first instance that comes before the one with the changes. What is in effect up to there
	// is not of these changes.
	After order.Point
	seen  bool // they were in effect
}

// before reports whether an entry of the first instance comes before another one. The first instance behind a seal has
// a higher number.
func before(a, b order.Point) bool {
	return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Index, b.Index)) < 0
}

// Seen reports whether the changes were in effect at some moment since the watch began.
func (w *ConfigWatch) Seen() bool { return w.seen }

// observe looks at what is in effect once an entry of the first instance is applied.
func (w *ConfigWatch) observe(configs []protocol.Config, applied order.Point) {
	if before(applied, w.After) {
		return
	}
	if w.first {
		configs = configs[:1]
	}
	w.seen = w.seen || !slices.ContainsFunc(configs,
		func(c protocol.Config) bool { return !ChangesApplied(&c, w.changes) })
}

// ChangesApplied reports whether a membership is as the changes want it. A profile may have been replaced since.
func ChangesApplied(c *protocol.Config, changes []protocol.Change) bool {
	for _, ch := range changes {
		m := c.Find(ch.Member.ID)
		switch ch.Kind {
		case protocol.RemoveMember:
			if m != nil {
				return false
			}
		case protocol.AddVoter:
			if m == nil || m.Learner || !m.Amended(&ch.Member) {
				return false
			}
		case protocol.Tune:
			if !c.Profile.Had(ch.Profile) {
				return false
			}
		default:
			if m == nil || ch.Kind == protocol.UpdateMember && !m.Amended(&ch.Member) {
				return false
			}
		}
	}
	return !c.Joint()
}

// NewApplied is what is known before anything is applied in this incarnation.
func NewApplied(a *Applier) *Applied {
	p := &Applied{configs: a.Configs()}
	p.note(a)
	return p
}

func (p *Applied) note(a *Applier) {
	p.cursor, p.brought, p.stuck = a.Cursor(), a.brought, a.Stuck()
	if a.mutant == member.MutantStateUnchecked {
		p.brought = 0
	}
	if n := len(p.cursor.Points); n != len(p.added) || p.cursor.Points[n-1].Instance != p.shape[n-1] {
		p.shape, p.added = p.cursor.Instances(), make([]protocol.Index, n)
		p.backlog = make([]int, n)
	}
	for i, id := range p.shape {
		p.added[i], p.backlog[i] = a.Added(id), a.Waiting(id)
	}
	p.groups.Placed = a.order.Placed(p.shape[0])
}

// Note notes how far the applier is. It returns the groups of reads that this serves. It also returns those for which
// instances must be asked again, see intake.ReadGroup.Again, and the readers whose tokens are applied. A
// [*StateAheadError] is final: no one is served then.
func (p *Applied) Note(a *Applier) (ready, again []*intake.ReadGroup, told []*intake.TokenRead, err error) {
	p.note(a)
	if p.Doubtful() && p.groups.Reached(p.state()) {
		return nil, nil, nil, &StateAheadError{State: p.brought, Log: p.cursor.Position}
	}
	if !p.Doubtful() {
		ready, again = p.groups.Served(p.state())
	}
	return ready, again, p.tokens.remove(func(r *intake.TokenRead) bool { return r.After.AllApplied(a.Token) }), nil
}

// state is how far reads are served.
func (p *Applied) state() *intake.ReadState {
	return &intake.ReadState{At: &p.cursor, Shape: p.shape, Added: p.added}
}

// memberships are those of all instances right after an entry with one was applied. lead is how far the first instance
// was applied then.
type memberships struct {
	configs []protocol.Config
	lead    order.Point
}

// NoteConfigs notes the memberships. Those who wait for them see it, also if another one has taken their place since:
// several may be applied at once.
func (p *Applied) NoteConfigs(a *Applier) {
	p.configs = a.Configs() // shared with no one who would change them
	p.note(a)
	passed := append(a.passed, memberships{p.configs, p.lead()})
	a.passed = nil
	p.changing = slices.DeleteFunc(p.changing, func(w *ConfigWatch) bool {
		for i := range passed {
			w.observe(passed[i].configs, passed[i].lead)
		}
		return w.seen
	})
}

// Watch waits until changes are in effect in all instances, or only in the first one.
func (p *Applied) Watch(changes []protocol.Change, first bool) *ConfigWatch {
	w := &ConfigWatch{changes: changes, first: first}
	if w.observe(p.configs, p.lead()); !w.seen {
		p.changing = append(p.changing, w)
	}
	return w
}

// lead is how far the first instance is applied.
func (p *Applied) lead() order.Point {
	if len(p.cursor.Points) == 0 {
		return order.Point{}
	}
	return p.cursor.Points[0]
}

// Unwatch ends a watch. It may be nil.
func (p *Applied) Unwatch(w *ConfigWatch) {
	p.changing = slices.DeleteFunc(p.changing, func(o *ConfigWatch) bool { return o == w })
}

// Watched is how many watches have not seen their changes.
func (p *Applied) Watched() int { return len(p.changing) }

// At returns how far the global log is applied, and the memberships of the active instances.
func (p *Applied) At() (order.Cursor, []protocol.Config) { return p.cursor, p.configs }

// Shape are the active instances.
func (p *Applied) Shape() []protocol.InstanceID { return p.shape }

// Config returns the membership of an instance. For one that is not active it returns the cluster's.
func (p *Applied) Config(instance protocol.InstanceID) protocol.Config {
	return p.configs[max(0, p.place(instance))]
}

// Of returns the last entry of an instance that is in the order, and the last that is applied. ok
// is false if the instance is retired. Nothing is applied of one that begins later in the log.
func (p *Applied) Of(instance protocol.InstanceID) (added, applied protocol.Index, ok bool) {
	i := p.place(instance)
	if i < 0 {
		return 0, 0, p.cursor.Expects(instance)
	}
	return p.added[i], p.cursor.Points[i].Index, true
}

// Backlog is how many entries of an instance wait in the order.
func (p *Applied) Backlog(instance protocol.InstanceID) int {
	if i := p.place(instance); i >= 0 {
		return p.backlog[i]
	}
	return 0
}

// place is where an instance stands among the active ones; -1 if it is not active.
func (p *Applied) place(instance protocol.InstanceID) int {
	for i, id := range p.shape {
		if id == instance {
			return i
		}
	}
	return -1
}

// Ask begins a group's read index, or begins it again: see intake.ReadGroups.Ask. In a keyed order, and as long as the
// state is doubtful, all instances are asked.
func (p *Applied) Ask(g *intake.ReadGroup, since protocol.Position, shape []protocol.InstanceID,
	one protocol.InstanceID) bool {
	if p.cursor.Keyed || p.Doubtful() {
		one = 0
	}
	return p.groups.Ask(g, since, shape, one)
}

// AddReadIndex takes in an instance's part of a group's read index. complete says that it was the last part. ready says
// that the state serves the group; the group has ended then. look says that Apply has to look, see ApplyItem.Look:
// perhaps nothing more is applied for long, and instances must be asked again for the group.
func (p *Applied) AddReadIndex(g *intake.ReadGroup, instance protocol.InstanceID,
	index protocol.Index) (complete, ready, look bool) {
	state := p.state()
	complete, ready = p.groups.Point(g, instance, index, p.Doubtful() || p.stuck, state)
	return complete, ready, p.Doubtful() || complete && g.Again(state)
}

// FailRead ends a group without an answer. It reports false if it had ended.
func (p *Applied) FailRead(g *intake.ReadGroup) bool { return p.groups.Fail(g) }

// DropRead ends a group for which no one waits, if it has all its read indexes. Its Done is not called.
func (p *Applied) DropRead(g *intake.ReadGroup) { p.groups.Drop(g) }

// Asking is how many groups wait for read indexes: plain ones, and barriers.
func (p *Applied) Asking() [2]int { return p.groups.Under }

// Check verifies the invariants.
func (p *Applied) Check() error { return p.tokens.check() }

// Break makes a mutant of it.
func (p *Applied) Break(m mutant.Name) { p.groups.Mutant = m }

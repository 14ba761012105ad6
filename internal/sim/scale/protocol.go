package scale

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
)

// Dependencies of a run on its protocol, as in production: see braid.Options and package replica.

// choose finds the protocol, the order of its instances, and their preferred leaders.
func (w *world) choose() {
	p := registry.Find(w.cfg.Protocol)
	kind, _ := p.OrderOf("", w.cfg.Instances)
	w.protocol, w.begin = p, order.Begin(w.cfg.Instances, kind == order.KindNiagara)
	if p.Keyed("") {
		w.begin = order.BeginKeyed(w.cfg.Instances)
	}
	switch {
	case kind == order.KindSingle:
	case p.Core.Judged.ManyLead:
		w.leaders = protocol.LeadersAll
	case p.Moves():
		w.leaders = protocol.LeadersBegin
	case w.cfg.Spread || w.begin.Keyed:
		w.leaders = protocol.LeadersSpread
	default:
		w.leaders = protocol.LeadersTogether
	}
}

// newCore creates the core of an instance.
func (w *world) newCore(m *node, instance protocol.InstanceID, rec protocol.Recovered) (protocol.Core, error) {
	s := protocol.Settings{
		Self: m.id, Instance: instance, Session: m.session, Heartbeat: heartbeat, ElectionTimeout: electionTimeout,
		PipelineDepth: w.cfg.Depth, Leaders: w.leaders, Own: w.cfg.Own,
		Merged: w.begin.Merged(),
	}
	if w.cfg.NoBatching {
		s.MaxFrameEntries = 1
	}
	rec.Follows = instance != protocol.FirstInstance
	return w.protocol.Core.New(s, rec)
}

// newApplier creates the applier of a member: a state machine, or one for each group of keys.
func (w *world) newApplier(m *node, a *applyThread, meta *member.Meta) (*apply.Applier, error) {
	var sm member.StateMachine = machineOf{a}
	if w.begin.Keyed {
		groups, err := apply.NewGroups(meta.Cursor.Instances(), func(protocol.InstanceID) member.StateMachine { return machineOf{a} })
		if err != nil {
			return nil, err
		}
		sm = groups
	}
	applier := apply.NewApplier(sm, *meta, m.session, 0, lifecycle.LoadFrom(m.disk.log))
	return applier, applier.Derive(w.protocol.Core.Deriving(w.cfg.Own), meta)
}

// keyed reports whether commands have keys.
func (w *world) keyed() bool { return w.begin.Keyed || w.protocol.Core.Proposing.Keys }

// keyGroups is the minimal number of groups of keys. No two members use the same group, as long as there are enough.
const keyGroups = 16

// nextKey returns the key of a member's next command: one that all use, or one of a group that no other member uses.
// The groups are assigned to members in turns. They are those of the instances, if these are groups of keys.
func (w *world) nextKey(m *node) uint64 {
	groups := max(keyGroups, w.cfg.Nodes)
	if w.begin.Keyed {
		groups = w.cfg.Instances
	}
	if w.cfg.Conflicts > 0 && w.rng.Float64() < w.cfg.Conflicts {
		return uint64(groups)
	}
	group := (int(m.id) - 1) % groups
	if own := (groups - 1 - group) / w.cfg.Nodes; own > 0 {
		group += w.cfg.Nodes * w.rng.IntN(own+1)
	}
	m.keys++
	number := m.keys
	if w.cfg.Keys > 0 {
		number = uint64(w.rng.IntN(max(1, w.cfg.Keys/groups)))
	}
	return uint64(2*groups+group) + uint64(groups)*number
}

// leading returns the preferred leaders of instances at the beginning.
func (w *world) leading() (leaders []*node) {
	for i := range w.cfg.Instances {
		if m := w.leader(protocol.InstanceID(i + 1)); !slices.Contains(leaders, m) {
			leaders = append(leaders, m)
		}
	}
	return leaders
}

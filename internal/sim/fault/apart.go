package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// A member that was founded apart has a log of its own, although its cluster id is the same. It runs in a small World
// of its own, as the only voter, and continues to acknowledge commands. An operator adds it to this cluster. No
// member may accept a link with it: two logs would be mixed. The cluster continues to serve meanwhile, as with a
// member that is down. Then the operator gives it an empty disk, and it joins.

// apartInRun is the source of chance for members that were founded apart.
var apartInRun = draw.New("apart in a run")

var linksTriedApart = count.New("links_tried_with_members_founded_apart", "links tried with members founded apart")

// drawApart draws whether there is such a member. Groups of keys and orders by key have no lineage. A cluster of one
// member needs majority quorums.
func (s *Settings) drawApart(d draw.Chance) {
	s.Apart = d.Yes(0.1) && !s.Keyed && !s.ByKey() && s.Core.Placement != protocol.PlacementRS &&
		s.Quorums == quorum.System{}
}

// apartWorld is the world of a member that was founded apart.
type apartWorld struct {
	*smallWorld
	founder *node.Member
}

// BeginApart schedules the addition of a member that was founded apart.
func BeginApart(w *World) {
	if w.Set.Apart {
		w.After(time.Duration(w.From(apartInRun).Share()*float64(w.Set.Chaos)/2), func() { addApart(w) })
	}
}

// addApart founds a separate cluster of one member, and asks this cluster to add that member.
func addApart(w *World) {
	if w.Calm {
		return
	}
	m := node.NewMember(&w.Environment, protocol.MemberID(len(w.Members)+1))
	m.Join, m.Apart = true, true
	w.alone[m.ID] = foundApart(w, protocol.MemberID(len(w.Members)+1))
	w.Members = append(w.Members, m)
	w.alone[m.ID].Run(w.Set.Election * time.Duration(w.From(apartInRun).Below(12)))
	w.Tracef("FAULT %s was founded apart, and has acknowledged %d commands", m.ID, w.alone[m.ID].History.Acked)
	kind := [...]protocol.ChangeKind{protocol.AddLearner, protocol.AddVoter}[w.From(apartInRun).Below(2)]
	if asked := w.victim(); asked != nil {
		askChange(w, asked, []protocol.Change{{Kind: kind, Member: protocol.Member{ID: m.ID}}})
	}
	w.After(w.Set.Election*time.Duration(2+w.From(apartInRun).Below(12)), func() { EndApart(w, m) })
	tryLinks(w, m)
}

// foundApart makes a World with one member and a client that writes. Nothing fails there.
func foundApart(w *World, id protocol.MemberID) *apartWorld {
	s := &apartWorld{smallWorld: found(w, 0x6170617274, func(set *Settings) { set.Nodes, set.Alone = 1, id })}
	for len(s.Members) < int(id) {
		s.Members = append(s.Members, node.NewMember(&s.Environment, protocol.MemberID(len(s.Members)+1)))
	}
	s.founder = s.Members[id-1]
	s.founder.Saved = newborn(s.World)
	s.probe = s.Clients.Probe(1, s.founder)
	s.After(0, func() { s.Boot(s.founder) })
	s.After(s.Set.Tick, s.write)
	return s
}

// tryLinks periodically tries links between the members of the cluster and the one that was founded apart.
func tryLinks(w *World, m *node.Member) {
	s := w.alone[m.ID]
	if s == nil || w.Calm {
		return
	}
	if s.founder.Up && w.From(apartInRun).Yes(0.05) {
		s.founder.Crash()
		s.Boot(s.founder)
	}
	s.Run(s.Now() + w.Set.Heartbeat)
	if s.Broken != nil {
		w.Violate(m.ID, fmt.Errorf("in a world of its own: %w", s.Broken))
	}
	for _, o := range w.Members {
		// A member without a log adopts the first lineage that it receives.
		if !o.Up || !s.founder.Up || !o.HasLog() || s.founder.Handshakes.Lineage() == 0 {
			continue
		}
		w.Count(linksTriedApart)
		if wouldLink(o, s.founder) || wouldLink(s.founder, o) {
			w.Violate(o.ID, fmt.Errorf(
				"has a link with member %s, whose log is another one with %d commands, after %d here",
				m.ID, s.History.Acked, w.History.Acked))
			return
		}
	}
	w.After(w.Set.Heartbeat, func() { tryLinks(w, m) })
}

// wouldLink reports whether a member would dial another one and both accept the link, by the rules of production.
func wouldLink(from, to *node.Member) bool {
	if !from.Links.Has(to.ID) ||
		!to.Links.Has(from.ID) && to.Handshakes.Admit(to.Memberships(), from.ID) != 0 ||
		!from.Handshakes.Agrees(to.Handshakes.Birth()) || !node.SameLineage(from, to) {
		return false
	}
	atFrom, atTo := node.Meet(from, to)
	return atFrom == nil && atTo == nil && node.Related(from, to)
}

// EndApart is the operator's repair: the member gets an empty disk, and joins the cluster.
func EndApart(w *World, m *node.Member) {
	if !m.Apart {
		return
	}
	m.Apart = false
	delete(w.alone, m.ID)
	if !m.Gone && !w.Calm {
		w.Tracef("FAULT %s gets an empty disk", m.ID)
		w.StartLater(m, w.Between(0, w.Set.Election))
	}
}

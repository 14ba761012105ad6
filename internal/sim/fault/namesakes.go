package fault

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Two clusters may have the same token and the same member names, and so the same ids. At the address of a member of
// one cluster, a member of the other may answer: if the first is down, was wiped, or has moved. No member may accept
// a link with a member of the other cluster once both know the origins of their logs, and none may stop because of
// the other cluster's messages. A member that joins may find the other cluster first. Then it belongs to that one.

// mistakenMembers is the source of chance for another cluster of the same members.
var mistakenMembers = draw.New("mistaken members")

var linksTriedMistaken = count.New("links_tried_with_members_of_a_cluster_of_the_same_names",
	"links tried with members of a cluster of the same names")

// Namesakes is the origin of the other cluster.
type Namesakes int

const (
	noNamesakes       Namesakes = iota
	FoundedNamesakes            // independently
	RestoredNamesakes           // independently, with another state
	CopiedNamesakes             // on copies of the directories, made before there was a log
	MisledNamesakes             // independently; a member that joins finds it first
	namesakeKinds
)

// NamesakeNames are the names of Namesakes in the description of settings.
var NamesakeNames = [namesakeKinds]string{"no", "founded", "restored", "copied", "misleading"}

// drawNamesakes draws whether there is such a cluster. See drawApart.
func (s *Settings) drawNamesakes(d draw.Chance) {
	if !d.Yes(0.1) || s.Keyed || s.ByKey() || s.Core.Placement == protocol.PlacementRS ||
		s.Quorums != (quorum.System{}) || s.Nodes < 2 || s.Nodes > 5 {
		return
	}
	s.Namesakes = FoundedNamesakes + Namesakes(d.Below(int(namesakeKinds)-1))
	if s.Namesakes == RestoredNamesakes && (!s.Durable || s.Bodies.Share > 0) {
		s.Namesakes = FoundedNamesakes
	}
	if s.Namesakes == CopiedNamesakes && (s.Durable || s.Birth != "") {
		s.Namesakes = MisledNamesakes
	}
}

// otherWorld is the world of the other cluster.
type otherWorld struct {
	*smallWorld
	misled *node.Member // of this world: it belongs to the other cluster
}

// BeginNamesakes founds the other cluster, which starts later. Copies of directories are made at once.
func BeginNamesakes(w *World) {
	if w.Set.Namesakes == noNamesakes {
		return
	}
	s := foundNamesakes(w)
	if w.Set.Namesakes == CopiedNamesakes {
		for i, m := range s.Members {
			s.Boot(m)
			m.Crash()
			w.Members[i].Disk = m.Disk.Copy()
		}
	}
	w.After(time.Duration(w.From(mistakenMembers).Share()*float64(w.Set.Chaos)/3), func() {
		w.Tracef("FAULT another cluster has the same members: %s", NamesakeNames[w.Set.Namesakes])
		for _, m := range s.Members {
			s.Boot(m)
		}
		s.write()
		mistake(w, s)
	})
}

// foundNamesakes makes the world of the other cluster. Restarts of members are its only faults.
func foundNamesakes(w *World) *otherWorld {
	s := &otherWorld{smallWorld: found(w, 0x6e616d6573, func(set *Settings) {
		if w.Set.Namesakes == RestoredNamesakes {
			set.Birth = "archive"
		}
	})}
	for _, m := range s.Members {
		m.Saved = newborn(s.World)
	}
	s.probe = s.Clients.Probe(1, s.Members[0])
	return s
}

// mistake periodically tries links between members of both clusters, and sometimes restarts a member of the other
// one.
func mistake(w *World, s *otherWorld) {
	if w.Calm || w.Broken != nil {
		return
	}
	if m := s.Members[w.From(mistakenMembers).Below(len(s.Members))]; m.Up && w.From(mistakenMembers).Yes(0.03) {
		m.Crash()
		s.Boot(m)
	}
	s.Run(s.Now() + w.Set.Heartbeat)
	if s.Broken != nil {
		w.Violate(0, fmt.Errorf("in a world of its own: %w", s.Broken))
		return
	}
	if w.Set.Namesakes == MisledNamesakes && s.misled == nil {
		mislead(w, s)
	}
	for _, m := range w.Members {
		for _, o := range s.Members {
			mistaken(w, m, o)
		}
	}
	w.After(w.Set.Heartbeat, func() { mistake(w, s) })
}

// mistaken tries links between a member of this cluster and one of the other cluster, in both directions.
func mistaken(w *World, m, o *node.Member) {
	if m.ID == o.ID || !m.Up || !o.Up || m.Misled || !knowApart(m, o) {
		return
	}
	w.Count(linksTriedMistaken)
	if wouldLink(m, o) || wouldLink(o, m) {
		w.Violate(m.ID, fmt.Errorf("has a link with member %s of another cluster", o.ID))
	}
	if !o.Up {
		w.Violate(m.ID, fmt.Errorf("member %s of another cluster stops because of it", o.ID))
	}
}

// knowApart reports whether two members know that their logs have different origins.
func knowApart(m, o *node.Member) bool {
	a, b := m.Handshakes.Origin(), o.Handshakes.Origin()
	return a.Lineage != 0 && b.Lineage != 0 || !a.Birth.Unknown && !b.Birth.Unknown && a.Birth.State != b.Birth.State
}

// mislead adds a member that finds the other cluster before this one.
func mislead(w *World, s *otherWorld) {
	asked := w.Leader()
	if asked == nil || s.Members[0].Handshakes.Lineage() == 0 ||
		len(w.Members) >= w.Set.Nodes+maxAdded || w.Set.Birth != "" {
		return
	}
	m := node.NewMember(&w.Environment, protocol.MemberID(len(w.Members)+1))
	m.Join, m.Misled, s.misled = true, true, m
	w.OtherLineage = s.Members[0].Handshakes.Lineage()
	w.Members = append(w.Members, m)
	w.Boot(m)
	if !m.Up {
		return
	}
	if err := m.Handshakes.Relate(1, w.OtherLineage, 0); err != nil {
		w.Violate(m.ID, err)
	}
	kind := [...]protocol.ChangeKind{protocol.AddLearner, protocol.AddVoter}[w.From(mistakenMembers).Below(2)]
	askChange(w, asked, []protocol.Change{{Kind: kind, Member: protocol.Member{ID: m.ID, PeerURLs: m.URLs()}}})
	w.After(w.Set.Election*time.Duration(4+w.From(mistakenMembers).Below(12)), func() { LeaveOther(w, m) })
}

// Misled implements node.Observer: the operator notices it later.
func (w *World) Misled(m *node.Member) { w.After(w.Set.Election, func() { LeaveOther(w, m) }) }

// LeaveOther is the operator's repair after a member joined another cluster. All such members get empty disks at the
// same time: they remember each other's old disks.
func LeaveOther(w *World, m *node.Member) {
	if !m.Misled {
		return
	}
	misled := slices.DeleteFunc(slices.Clone(w.Members), func(o *node.Member) bool { return !o.Misled })
	for _, o := range misled {
		emptyDisk(w, o, misled)
	}
}

// emptyDisk gives a member that joined another cluster an empty disk, as these all get.
func emptyDisk(w *World, m *node.Member, all []*node.Member) {
	m.Crash()
	m.Misled, m.Disk, m.Saved, m.Lives, m.Backup = false, device.NewDisk(), nil, 0, nil
	if slices.ContainsFunc(w.Members, func(o *node.Member) bool {
		return !slices.Contains(all, o) && w.Acquainted[device.Pair{From: o.ID, To: m.ID}] > 0
	}) {
		m.Strangers++ // it had links here before it was misled, but no log
		m.Blank++
	}
	if !m.Gone && !w.Calm {
		w.Tracef("FAULT %s gets an empty disk", m.ID)
		w.StartLater(m, w.Between(0, w.Set.Election))
	}
}

package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Links between some members only. A cluster serves as long as one member reaches a quorum. But then not all
// members reach each other, and they do not agree on which members run.

var faultHubs = &Fault{Name: "hubs", Does: "only some members have links with all others"}

func init() {
	faultHubs.Draw = (*Settings).drawHubs
	faultHubs.Strike = func(w *World, _ *node.Member) { cutToHubs(w) }
	faultHubs.End = HealLinks
}

// drawHubs draws whether only some members have links with all others, as with five machines in two networks, where
// two machines are in both.
func (s *Settings) drawHubs(d draw.Chance) {
	if s.Nodes >= 4 && d.Yes(0.1) {
		s.Faults[faultHubs] = s.Election * time.Duration(5+d.Below(15))
	}
}

// cutToHubs cuts all links but those of half of the members, the hubs, so that each other member still reaches a
// majority.
func cutToHubs(w *World) {
	var hubs []protocol.MemberID
	for _, i := range w.Rand.Perm(len(w.Members))[:len(w.Members)/2] {
		hubs = append(hubs, w.Members[i].ID)
	}
	OnlyLinksOf(w, hubs...)
	w.Tracef("FAULT links are cut:%s", describeCuts(w))
	w.After(w.Between(0, 20*w.Set.Election), func() { HealLinks(w) })
}

// OnlyLinksOf cuts all links but those to and from these members. Those of a member that is away stay cut.
func OnlyLinksOf(w *World, hubs ...protocol.MemberID) {
	HealLinks(w)
	for _, a := range w.Members {
		for _, b := range w.Members {
			if a != b && !slices.Contains(hubs, a.ID) && !slices.Contains(hubs, b.ID) {
				w.Net.Link(a.ID, b.ID).Cut = true
			}
		}
	}
}

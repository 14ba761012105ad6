package fault

import (
	"fmt"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Members have zones where quorums depend on them, and operators move members to other zones.

var faultZone = &Fault{Name: "zone", Does: "the operator changes members' zones"}

func init() {
	faultZone.Draw = (*Settings).drawZones
	faultZone.Strike = func(w *World, _ *node.Member) { changeZones(w) }
}

// zonesInRun draws the zones that members get during a run.
var zonesInRun = draw.New("zones")

var zoneChanges = count.New("zoneChanges", "changes of zones", count.Zoned)

// zoneMutants begins the names of the mutants that changes of zones find. Searches for others have no zones.
const zoneMutants = "zone-"

// zoneNames is the number of different zones. Quorums by zones use as many as they have.
const zoneNames = 4

// drawZones draws the zones of the first members where quorums are in columns or by zones.
func (s *Settings) drawZones(d draw.Chance) {
	_, _, rows, zones := s.Quorums.Parts()
	if rows == 0 && zones.Count == 0 || s.Mutant != "" && !strings.HasPrefix(s.Mutant, zoneMutants) || !d.Yes(0.7) {
		return
	}
	s.placeInZones(d, zones)
}

// placeInZones draws the zones of the first members, for quorums by zones if there are any.
func (s *Settings) placeInZones(d draw.Chance, zones quorum.Zones) {
	for i := range s.Nodes {
		zone := i // so each zone of the quorums has a member
		if zones.Count == 0 || i >= zones.Count {
			zone = d.Below(s.zones())
		}
		s.Zones = append(s.Zones, zoneName(zone))
	}
	d.Rand.Shuffle(len(s.Zones), func(i, j int) { s.Zones[i], s.Zones[j] = s.Zones[j], s.Zones[i] })
	if !s.Protocol.Core.Judged.Fixed {
		s.Faults[faultZone] = s.Election * time.Duration(2+d.Below(15))
	}
}

// zones is the number of zones in use.
func (s *Settings) zones() int {
	for _, y := range []quorum.System{s.Quorums, s.Targets.Quorums} {
		if _, _, _, zones := y.Parts(); zones.Count > 0 {
			return zones.Count
		}
	}
	return zoneNames
}

func zoneName(i int) string { return string(rune('a' + i)) }

func (s *Settings) describeZones() string {
	if len(s.Zones) == 0 {
		return ""
	}
	return fmt.Sprintf("zones of the first members: %s\n", strings.Join(s.Zones, " "))
}

// someZone draws the zone of a member that joins; "": members have none.
func someZone(w *World) string {
	if len(w.Set.Zones) == 0 {
		return ""
	}
	return zoneName(w.From(zonesInRun).Below(w.Set.zones()))
}

// changeZones moves a member to another zone, sometimes several by one change. Some of these changes leave too few or
// too many zones, or change quorums that have to intersect: they are refused.
func changeZones(w *World) {
	m, knows := memberToAsk(w), w.Leader()
	if m == nil || knows == nil {
		return
	}
	d, config := w.From(zonesInRun), knows.Witness.Latest.Config
	var changes []protocol.Change
	for more := len(config.Members) > 0; more; more = d.Yes(0.3) {
		some := protocol.Member{ID: config.Members[d.Below(len(config.Members))].ID, Zone: someZone(w)}
		if d.Yes(0.05) {
			some.Zone = zoneName(zoneNames)
		}
		changes = append(changes, protocol.Change{Kind: protocol.UpdateMember, Member: some})
	}
	if len(changes) == 0 {
		return
	}
	w.Count(zoneChanges)
	askChange(w, m, changes)
}

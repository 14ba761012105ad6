package fault

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// bodyLimits is the source of the limits of bodies.
var bodyLimits = draw.New("body limits")

// DefaultProtocol is the protocol of a run that names none.
const DefaultProtocol = "raft"

// defaultInstances is the default number of instances where there are several. maxInstances is the maximum that
// options may ask for.
const (
	defaultInstances = 3
	maxInstances     = 16
)

// ProtocolOf finds a protocol by its name; "" is DefaultProtocol.
func ProtocolOf(name string) (*registry.Protocol, error) {
	p := registry.Find(cmp.Or(name, DefaultProtocol))
	if p == nil {
		return nil, &OptionError{fmt.Sprintf("protocol %q cannot be simulated; there is: %v", name, registry.Names())}
	}
	return p, nil
}

// InstancesOf returns the number of instances; 0: there is only one, and its log is the global log. wished is a kind
// of order, or "" for the protocol's own. wish is a number, or 0 for the default.
func InstancesOf(p *registry.Protocol, wished string, wish int) (int, error) {
	kind, err := p.OrderOf(order.Kind(wished), wish)
	switch {
	case err != nil:
		return 0, &OptionError{err.Error()}
	case wish < 0 || wish > maxInstances:
		return 0, &OptionError{fmt.Sprintf("%d instances: want 1 … %d", wish, maxInstances)}
	case kind == order.KindNiagara || kind == order.KindKeyed:
		return cmp.Or(wish, defaultInstances), nil
	case wish > 1:
		return 0, &OptionError{fmt.Sprintf("%d instances: order %s has one", wish, kind)}
	case wish == 1 && p.Grows():
		return 1, nil // others may join it
	}
	return 0, nil
}

// PlacementOf returns the protocol's placement of values. wish is a placement, or "" for the protocol's own.
func PlacementOf(p *registry.Protocol, wish string) (protocol.Placement, error) {
	place, err := p.Placement(protocol.Placement(wish))
	if err != nil {
		return "", &OptionError{err.Error()}
	}
	return place, nil
}

// rsVoters are the sizes of clusters for which the paper has fixed quorums.
var rsVoters = []int{5, 7}

// CheckNodes checks the number of nodes: a protocol with fixed quorums runs only in clusters of the paper's sizes.
func CheckNodes(p *registry.Protocol, nodes int) error {
	if p.Quorums != nil && !slices.Contains(rsVoters, nodes) {
		return &OptionError{fmt.Sprintf("%d nodes: %s has quorums for 5 and 7", nodes, p.Name)}
	}
	return nil
}

// QuorumsOf returns the quorums of a cluster with these settings and this number of initial voters.
func QuorumsOf(p *registry.Protocol, own setting.Values, nodes int) (quorum.System, error) {
	own, err := p.Complete(own)
	if err != nil {
		return quorum.System{}, &OptionError{err.Error()}
	}
	quorums, err := registry.QuorumsOf(own, nodes, nil)
	if err != nil {
		return quorums, &OptionError{err.Error()}
	}
	return quorums, nil
}

// drawLimits draws limits. In half of the runs they are small.
func drawLimits(d draw.Chance) (s node.LimitSettings) {
	if d.Yes(0.5) {
		s = node.LimitSettings{
			Filling: d.Limit(1, 2, 8), HolderCounts: d.Limit(1, 3, 64), InboxBytes: d.Limit(1, 1000, 10000),
			Asks: d.Limit(1, 4, 1<<16), Questions: d.Limit(1, 4, 1024), CacheBytes: int64(d.Limit(0, 1000, 20000)),
		}
	}
	return s
}

// drawBodies draws the settings for bodies from a source of its own, so that runs without bodies are the same as
// before bodies existed.
func (s *Settings) drawBodies(d draw.Chance) {
	if s.Keyed || s.ByKey() {
		return
	}
	often := 0.35
	if s.Core.Placement != protocol.PlacementCopy {
		often = 0.95
	}
	if !d.Yes(often) {
		return
	}
	b := &s.Bodies
	b.Share = 0.1 + 0.9*d.Share()
	b.Min = 1
	b.Max = d.Limit(3, 400, 6000)
	if d.Yes(0.5) {
		b.Min = b.Max/2 + 1
	}
	b.Release = d.Duration(0, s.Election)
	b.SegmentBytes = int64(d.Limit(8<<10, 32<<10, 256<<10))
	b.Hedge = d.Duration(s.Heartbeat/4, s.Election)
	b.Retry = b.Hedge + d.Duration(s.Heartbeat, s.Election)
	b.GatherBytes = int64(d.Limit(1, 5000, 1<<20))
	b.LimitSettings = drawLimits(bodyLimits.Of(s.Seed))
	if d.Yes(0.5) {
		b.Scrub = s.Election * time.Duration(1+d.Below(5))
	}
	if s.Faults[faultChange] == 0 && d.Yes(0.5) {
		s.Faults[faultDamage] = s.Election * time.Duration(1+d.Below(6))
	}
	s.Core.MaxUncommittedBytes += s.Clients * (b.Max + 500) * d.Limit(1, 4, 100)
	if s.Core.Placement != protocol.PlacementCode {
		return
	}
	// A larger k than the default may need all members. Smaller ones are drawn too.
	if q := s.Nodes/2 + 1; d.Yes(0.6) {
		s.Core.MaxK = 1 + d.Below(q)
	}
	s.Core.ExtraWhole = d.Limit(0, 0, 1)
	if d.Yes(0.4) {
		s.Resize = true
		s.Faults[faultChange] = s.Election * time.Duration(1+d.Below(8))
	}
}

// place sets the placement of bodies. It draws nothing.
func (s *Settings) place(draw.Chance) {
	s.Core.Placement = s.Placement
	if s.Protocol.Quorums == nil {
		return
	}
	s.Core.MaxK = registry.RSFragments
	q, err := s.Protocol.Quorums(s.Nodes, s.Core.MaxK)
	if err != nil {
		panic(err) // Campaign.Validate gives a better error
	}
	s.Core.ReadQuorum, s.Core.WriteQuorum = q, q
	s.Faults[faultChange] = 0
}

// decides returns the number of members that can decide and elect without the others, where quorums are fixed; else
// 0.
func (s *Settings) decides() int {
	if s.Protocol.Quorums == nil {
		return 0
	}
	return max(s.Core.ReadQuorum, s.Core.WriteQuorum)
}

func (s *Settings) describeBodies() string {
	r, b := &s.Core, &s.Bodies
	text := fmt.Sprintf("placement %s", r.Placement)
	if r.Placement != protocol.PlacementCopy {
		text += fmt.Sprintf(", k ≤ %d (0: default), extra whole %d", r.MaxK, r.ExtraWhole)
	}
	if b.Share == 0 {
		return text + "; no bodies\n"
	}
	if s.Resize {
		text += ", smaller and larger clusters"
	}
	return text + fmt.Sprintf("; %.0f%% of writes with bodies of %d…%d bytes, released ≤ %s later, segments %d; "+
		"hedge %s, retry %s, gather %d bytes; scrub every %s; limits %+v\n",
		100*b.Share, b.Min, b.Max, b.Release, b.SegmentBytes, b.Hedge, b.Retry, b.GatherBytes, b.Scrub, b.LimitSettings)
}

// OptionError reports a wrong setting of a campaign.
type OptionError struct{ Detail string }

func (e *OptionError) Error() string { return "sim: " + e.Detail }

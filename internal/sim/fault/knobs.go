package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// knob is a setting that operators tune.
type knob struct {
	name string
	// has reports whether clusters with these settings have it; nil: all have.
	has func(s *Settings) bool
	// turn draws another value.
	turn func(s *Settings, d draw.Chance, v setting.Values) setting.Values
}

// knobs are all of them. A cluster's clocks and links are drawn for the longest times that are tuned, and calm phases
// for the shortest.
var knobs = []knob{
	{name: "election-timeout", turn: func(s *Settings, d draw.Chance, v setting.Values) setting.Values {
		least := max(s.Quickest, 3*common.Heartbeat.In(v))
		return common.ElectionTimeout.Set(v, ends(d, least, max(least, s.Election)))
	}},
	{name: "heartbeat-interval", turn: func(s *Settings, d draw.Chance, v setting.Values) setting.Values {
		return common.Heartbeat.Set(v, ends(d, s.leastBeat(), min(s.Heartbeat, common.ElectionTimeout.In(v)/3)))
	}},
	{name: "lease-reads", turn: func(_ *Settings, _ draw.Chance, v setting.Values) setting.Values {
		return common.LeaseReads.Set(v, !common.LeaseReads.In(v))
	}},
	{name: "code-k", has: (*Settings).codes, turn: func(s *Settings, d draw.Chance, v setting.Values) setting.Values {
		return common.CodeK.Set(v, d.Below(s.Nodes/2+2))
	}},
	{name: "extra-whole", has: (*Settings).codes, turn: func(_ *Settings, d draw.Chance, v setting.Values) setting.Values {
		return common.ExtraWhole.Set(v, d.Below(3))
	}},
	{name: "leaders", has: (*Settings).prefers, turn: func(_ *Settings, d draw.Chance, v setting.Values) setting.Values {
		return common.Leaders.Set(v, [...]protocol.Leaders{protocol.LeadersTogether, protocol.LeadersSpread}[d.Below(2)])
	}},
	{name: lane.On.Name, has: (*Settings).TunesLanes, turn: func(
		_ *Settings, _ draw.Chance, v setting.Values,
	) setting.Values {
		return lane.On.Set(v, !lane.On.In(v))
	}},
	{name: "relays", has: owns(relay.Groups), turn: func(_ *Settings, d draw.Chance, v setting.Values) setting.Values {
		return relay.Groups.Set(v, d.Below(3))
	}},
	{name: "no-skip", has: owns(iss.NoSkip), turn: func(_ *Settings, _ draw.Chance, v setting.Values) setting.Values {
		return iss.NoSkip.Set(v, !iss.NoSkip.In(v))
	}},
	{name: "skip-wait", has: owns(iss.SkipWait), turn: func(s *Settings, d draw.Chance, v setting.Values) setting.Values {
		return iss.SkipWait.Set(v, time.Duration(d.Below(2))*d.Duration(0, s.Heartbeat))
	}},
}

// placementsTuned draws when values are kept in another placement. It is apart from the other knobs, so that runs
// without such a tune are the same as before there was one.
var placementsTuned = draw.New("placements tuned")

var otherPlacements = count.New("tunes_of_the_placement", "tunes of the placement")

// turnPlacement sometimes draws another placement of values, of those that the protocol can have.
func turnPlacement(w *World, v setting.Values) setting.Values {
	s, d := &w.Set, w.From(placementsTuned)
	if s.Bodies.Share == 0 || s.Core.Placement == protocol.PlacementRS ||
		!slices.Contains(s.Protocol.Placements, protocol.PlacementCode) || !d.Yes(0.2) {
		return v
	}
	w.Count(otherPlacements)
	if common.Placement.In(v) == protocol.PlacementCode {
		return copied(v)
	}
	return coded(s, d, v)
}

// copied are values with placement copy, and coded are some with placement code.
func copied(v setting.Values) setting.Values {
	v = v.Without(common.CodeK.Name).Without(common.ExtraWhole.Name)
	return common.Placement.Set(v, protocol.PlacementCopy)
}

func coded(s *Settings, d draw.Chance, v setting.Values) setting.Values {
	v = common.Placement.Set(v, protocol.PlacementCode)
	return common.ExtraWhole.Set(common.CodeK.Set(v, d.Below(s.Nodes/2+2)), d.Below(3))
}

// ends draws a time between two, often one of them.
func ends(d draw.Chance, lo, hi time.Duration) time.Duration {
	switch d.Below(4) {
	case 0:
		return lo
	case 1:
		return hi
	}
	return d.Duration(lo, hi)
}

// leastBeat is the shortest interval of heartbeats that operators tune.
func (s *Settings) leastBeat() time.Duration { return max(s.Heartbeat/2, s.LeastHeartbeat()) }

// codes reports whether bodies may be coded.
func (s *Settings) codes() bool { return s.Core.Placement == protocol.PlacementCode }

// owns returns the function that reports whether the protocol has a setting of its own.
func owns(a setting.Any) func(*Settings) bool {
	return func(s *Settings) bool { return s.Protocol.Core.Settings.Has(a) }
}

// values are the values of a member's flags.
func values(s *protocol.Settings) setting.Values {
	v := common.Heartbeat.Set(s.Own, s.Heartbeat)
	v = common.ElectionTimeout.Set(v, s.ElectionTimeout)
	v = common.LeaseReads.Set(v, s.LeaseReads)
	v = common.Leaders.Set(v, s.Leaders)
	v = common.Placement.Set(v, s.Placement)
	if s.Placement == protocol.PlacementCode {
		v = common.ExtraWhole.Set(common.CodeK.Set(v, s.MaxK), s.ExtraWhole)
	}
	return v
}

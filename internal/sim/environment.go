package sim

import (
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// environment is what members run in: time, links, the other members, and judges. It knows nothing of faults and
// clients: what members do that these want to know is told to the observer.
type environment struct {
	world.Base
	draw.Chances // of all chance but that of the run itself, which is Base.Rand
	set          *nodeSettings
	observer     observer

	members []*Member // ids 1 …, in order; also those added later
	net     device.Network
	// acquainted is, for a pair of members, the highest life of the second with which the first has
	// had a link.
	acquainted map[device.Pair]uint64
	messages   int // sent so far

	court   *judge.Court
	orders  machine.Orders // of commands
	history *history.History
	// route, if set, is the instance that takes all batches.
	route protocol.InstanceID
	calm  bool // no more faults: the second phase
}

// member returns the member with that id.
func (w *environment) member(id protocol.MemberID) *Member { return w.members[id-1] }

func (w *environment) leaderOf(instance protocol.InstanceID) (leader *Member) {
	last := protocol.Term(0)
	for _, m := range w.members {
		if !m.up {
			continue
		}
		if s := m.of(instance); s != nil && !s.ended && s.leads() && s.witness.status.Term > last {
			leader, last = m, s.witness.status.Term
		}
	}
	return leader
}

// settingsOf returns a member's settings: those of the run, or its own where members are unequal.
func (w *environment) settingsOf(id protocol.MemberID) *nodeSettings {
	if !w.set.Unequal {
		return w.set
	}
	s := *w.set
	d := s.unequal(id)
	s.differ(d)
	w.Tracef("member %s: heartbeat %s, tick %s, segments %d, snapshot every %d bytes, keeps %d bytes of log; depth %d, batch %d commands %d bytes; frame %d bytes %d entries, depth %d, inflight %d, cache %d; scrub every %s",
		id, s.Core.Heartbeat, s.Tick, s.SegmentBytes, s.SnapshotBytes, s.KeepLogBytes, s.Depth, s.BatchCommands, s.BatchBytes,
		s.Core.MaxFrameBytes, s.Core.MaxFrameEntries, s.Core.PipelineDepth, s.Core.MaxInflightBytes, s.Core.CacheBytes, s.Bodies.Scrub)
	return &s
}

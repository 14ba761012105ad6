package node

import (
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/world"
	"github.com/braidlog/braid/protocol"
)

// Environment is the environment of members: time, links, the other members, and judges. It does not depend on faults
// and clients: it reports to them through the observer.
type Environment struct {
	world.Base
	draw.Chances // of all chance except that of the run itself, which is Base.Rand
	Set          *Settings
	Observer     Observer

	Members []*Member // ids 1 …, in order, with members that are added later
	Net     device.Network
	// Acquainted is, for a pair of members, the highest incarnation of the second that had a link with the first.
	Acquainted map[device.Pair]uint64
	Messages   int // sent so far

	Court   *judge.Court
	Orders  machine.Orders // of commands
	History *history.History
	// Route, if set, is the instance that takes all batches.
	Route protocol.InstanceID
	Calm  bool // no more faults: the second phase
	// OtherLineage is the lineage of another cluster of the same members, which some members joined; 0: none did.
	OtherLineage uint64
	// Fitters is how many fitters there were.
	Fitters int
}

// Member returns the member with that id.
func (w *Environment) Member(id protocol.MemberID) *Member { return w.Members[id-1] }

// LeaderOf returns the running member that leads the latest term of an instance, or nil.
func (w *Environment) LeaderOf(instance protocol.InstanceID) (leader *Member) {
	last := protocol.Term(0)
	for _, m := range w.Members {
		if !m.Up {
			continue
		}
		if s := m.Of(instance); s != nil && !s.ended && s.Leads() && s.Witness.Latest.Term > last {
			leader, last = m, s.Witness.Latest.Term
		}
	}
	return leader
}

// UpAnd lists the running members for which holds is true.
func (w *Environment) UpAnd(holds func(*Member) bool) (list []*Member) {
	for _, m := range w.Members {
		if m.Up && holds(m) {
			list = append(list, m)
		}
	}
	return list
}

// settingsOf returns a member's settings: those of the run, or its own where members are unequal.
func (w *Environment) settingsOf(id protocol.MemberID) *Settings {
	if !w.Set.Unequal {
		return w.Set
	}
	s := *w.Set
	d := s.unequal(id)
	s.differ(d)
	w.Tracef("member %s: heartbeat %s, tick %s, segments %d, snapshot every %d bytes, keeps %d bytes of log; depth %d, batch %d commands %d bytes; frame %d bytes %d entries, depth %d, inflight %d, cache %d; scrub every %s",
		id, s.Core.Heartbeat, s.Tick, s.SegmentBytes, s.SnapshotBytes, s.KeepLogBytes, s.Depth, s.BatchCommands, s.BatchBytes,
		s.Core.MaxFrameBytes, s.Core.MaxFrameEntries, s.Core.PipelineDepth, s.Core.MaxInflightBytes, s.Core.CacheBytes, s.Bodies.Scrub)
	return &s
}

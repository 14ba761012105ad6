package node

import (
	"time"

	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// Members whose settings differ, as far as operators may set them differently. When members connect, they compare the
// settings that must be equal (docs/using/settings.md, "Settings that must be equal").

// UnequalMembers draws whether members have settings of their own, and a member's settings.
var UnequalMembers = draw.New("unequal members")

// unequal returns the source of a member's own settings; 0: of whether members have any.
func (s *Settings) unequal(id protocol.MemberID) draw.Chance {
	return UnequalMembers.Of(s.Seed ^ uint64(id)<<32)
}

// differ draws again, for one member, some of the settings in which members may differ.
func (s *Settings) differ(d draw.Chance) {
	r := &s.Core
	for _, draw := range []func(){
		func() { r.Heartbeat = d.Duration(s.Heartbeat/2, s.Heartbeat) },
		func() { s.Tick = s.Heartbeat / time.Duration(2+d.Below(7)) },
		func() { s.SegmentBytes = int64(d.Limit(4<<10, 16<<10, 128<<10)) },
		func() { s.SnapshotBytes = d.Limit(300, 5000, 1<<30) },
		func() { s.KeepLogBytes = int64(d.Limit(0, 20, 40)) * int64(min(s.SnapshotBytes, 5000)) },
		func() { s.Depth = d.Limit(0, 1, 4) },
		func() { s.BatchCommands, s.BatchBytes = d.Limit(1, 3, 1000), d.Limit(1, 500, 1<<20) },
		func() { r.MaxFrameBytes, r.MaxFrameEntries = d.Limit(1, 2000, 1<<20), d.Limit(0, 1, 3) },
		func() { r.PipelineDepth = d.Limit(0, 1, 3) },
		func() { r.MaxInflightBytes = d.Limit(1, 5000, 32<<20) },
		func() { r.CacheBytes = d.Limit(1, 2000, 64<<20) },
		func() { r.NoParallelAppend = d.Yes(0.5) },
		func() { s.drawScrub(d) },
	} {
		if d.Yes(0.5) {
			draw()
		}
	}
	r.Own = s.Protocol.Core.Settings.Draw(d.Below, r.Own) // after the others: for defaults nothing is drawn
	if idles(s.Core.Own) {
		s.DrawIdle(d)
	}
}

// drawScrub draws the interval at which a member verifies its bodies, if it does at all.
func (s *Settings) drawScrub(d draw.Chance) {
	s.Bodies.Scrub = 0
	if s.Bodies.Share > 0 && d.Yes(0.5) {
		s.Bodies.Scrub = s.Election * time.Duration(1+d.Below(5))
	}
}

package metrics

import (
	"github.com/braidlog/braid"
)

// ofLanes are the metrics of instances that have lanes.
var ofLanes = newTable([]string{"instance"},
	gauge("braid_lane_open", "1 if this member can bring commands by a lane of its own.",
		func(l *braid.LanesStatus) float64 { return truth(l.Open) }),
	gauge("braid_lane_generation", "Last generation of acknowledgements of lanes that is committed.",
		func(l *braid.LanesStatus) float64 { return float64(l.Generation) }),
	gauge("braid_lane_accepting", "1 if lanes can be accepted as far as this member knows, 0 while members change.",
		func(l *braid.LanesStatus) float64 { return truth(l.Accepting) }),
	gauge("braid_lane_fence", "On the leader: 1 while a membership change waits for its fence.",
		func(l *braid.LanesStatus) float64 { return truth(l.Fence) }),
	gauge("braid_lane_by_leader", "1 while blind commands of this member go to the leader, because that is shorter.",
		func(l *braid.LanesStatus) float64 { return truth(l.ByLeader) }),
	gauge("braid_lane_window_bytes", "Bytes of one lane that are held at most and not confirmed.",
		func(l *braid.LanesStatus) float64 { return float64(l.Window) }),
	gauge("braid_lane_accepted_number", "Last batch of this member's own lane that was accepted or is committed.",
		func(l *braid.LanesStatus) float64 { return float64(l.Accepted) }),
	counter("braid_lane_sent_bytes_total", "Bytes that went to other members by lanes.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.SentBytes) }),
	counter("braid_lane_received_bytes_total", "Bytes that came by lanes.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.ReceivedBytes) }),
	counter("braid_lane_spared_bytes_total", "On the leader: bytes that it did not send because lanes had brought them.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.SparedBytes) }),
	counter("braid_lane_whole_groups_total", "On the leader: groups of lanes that it sent itself, because a follower "+
		"lacked batches or catches up.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.WholeGroups) }),
	counter("braid_lane_whole_bytes_total", "On the leader: bytes of the groups of lanes that it sent itself.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.WholeBytes) }),
	counter("braid_lane_missed_total", "Groups that this member asked the leader for because batches lacked.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.Missed) }),
	counter("braid_lane_refused_total", "Proposals that were refused because the window of this member's lane was full.",
		func(l *braid.LanesStatus) float64 { return float64(l.Counts.Refused) }),
)

// ofLane are the metrics of the lane of a member, over all its incarnations.
var ofLane = newTable([]string{"instance", "member"},
	gauge("braid_lane_confirmed_number", "Last batch of a member's lane that is committed.",
		func(l *lane) float64 { return float64(l.confirmed) }),
	gauge("braid_lane_durable_number", "Last batch of a member's lane that is on the disk here.",
		func(l *lane) float64 { return float64(l.durable) }),
	gauge("braid_lane_held_number", "Last batch of a member's lane that is held here.",
		func(l *lane) float64 { return float64(l.held) }),
	gauge("braid_lane_held_bytes", "Bytes of a member's lane that are held here and not confirmed.",
		func(l *lane) float64 { return float64(l.heldBytes) }),
)

// lane is a member's lane.
type lane struct {
	confirmed, durable, held uint64 // of its last incarnation
	heldBytes                int    // of all
}

// collectLanes reads the state of the lanes of an instance, if it has any.
func collectLanes(l *braid.LanesStatus, name string, emit Emit) {
	if l == nil {
		return
	}
	ofLanes.collect(l, emit, name)
	bytes := 0
	for i := range l.Lanes {
		h := &l.Lanes[i]
		bytes += h.HeldBytes
		if i+1 < len(l.Lanes) && l.Lanes[i+1].Lane.Member == h.Lane.Member {
			continue // numbers are those of the member's last incarnation; there is one metric for all
		}
		ofLane.collect(&lane{h.Confirmed, h.Durable, h.Held, bytes}, emit, name, h.Lane.Member.String())
		bytes = 0
	}
}

package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// laneDescs are the metrics of instances that have lanes.
type laneDescs struct {
	open, generation, accepting, fence, window     desc
	confirmed, accepted, durable, held, heldBytes  desc
	sent, received, spared, groups, whole, refused desc
	missed                                         desc
}

func newLaneDescs() laneDescs {
	return laneDescs{
		open:       newDesc(gauge, "braid_lane_open", "1 if this member can bring commands by a lane of its own.", "instance"),
		generation: newDesc(gauge, "braid_lane_generation", "Last generation of acknowledgements of lanes that is committed.", "instance"),
		accepting:  newDesc(gauge, "braid_lane_accepting", "1 if lanes can be accepted as far as this member knows, 0 while members change.", "instance"),
		fence:      newDesc(gauge, "braid_lane_fence", "On the leader: 1 while a membership change waits for its fence.", "instance"),
		window:     newDesc(gauge, "braid_lane_window_bytes", "Bytes of one lane that are held at most and not confirmed.", "instance"),
		confirmed:  newDesc(gauge, "braid_lane_confirmed_number", "Last batch of a member's lane that is committed.", "instance", "member"),
		accepted:   newDesc(gauge, "braid_lane_accepted_number", "Last batch of this member's own lane that was accepted or is committed.", "instance"),
		durable:    newDesc(gauge, "braid_lane_durable_number", "Last batch of a member's lane that is on the disk here.", "instance", "member"),
		held:       newDesc(gauge, "braid_lane_held_number", "Last batch of a member's lane that is held here.", "instance", "member"),
		heldBytes:  newDesc(gauge, "braid_lane_held_bytes", "Bytes of a member's lane that are held here and not confirmed.", "instance", "member"),
		sent:       newDesc(counter, "braid_lane_sent_bytes_total", "Bytes that went to other members by lanes.", "instance"),
		received:   newDesc(counter, "braid_lane_received_bytes_total", "Bytes that came by lanes.", "instance"),
		spared:     newDesc(counter, "braid_lane_spared_bytes_total", "On the leader: bytes that it did not send because lanes had brought them.", "instance"),
		groups:     newDesc(counter, "braid_lane_whole_groups_total", "On the leader: groups of lanes that it sent itself, because a follower lacked batches or catches up.", "instance"),
		whole:      newDesc(counter, "braid_lane_whole_bytes_total", "On the leader: bytes of the groups of lanes that it sent itself.", "instance"),
		missed:     newDesc(counter, "braid_lane_missed_total", "Groups that this member asked the leader for because batches lacked.", "instance"),
		refused:    newDesc(counter, "braid_lane_refused_total", "Proposals that were refused because the window of this member's lane was full.", "instance"),
	}
}

func (d *laneDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []desc{
		d.open, d.generation, d.accepting, d.fence, d.window, d.confirmed, d.accepted, d.durable, d.held, d.heldBytes,
		d.sent, d.received, d.spared, d.groups, d.whole, d.missed, d.refused,
	} {
		ch <- d.Desc
	}
}

// collect tells of the lanes of an instance, under its name.
func (d *laneDescs) collect(l *braid.LanesStatus, name string, emit emitFunc) {
	if l == nil {
		return
	}
	emit(d.open, truth(l.Open), name)
	emit(d.generation, float64(l.Generation), name)
	emit(d.accepting, truth(l.Accepting), name)
	emit(d.fence, truth(l.Fence), name)
	emit(d.window, float64(l.Window), name)
	emit(d.accepted, float64(l.Accepted), name)
	c := &l.Counts
	emit(d.sent, float64(c.SentBytes), name)
	emit(d.received, float64(c.ReceivedBytes), name)
	emit(d.spared, float64(c.SparedBytes), name)
	emit(d.groups, float64(c.WholeGroups), name)
	emit(d.whole, float64(c.WholeBytes), name)
	emit(d.missed, float64(c.Missed), name)
	emit(d.refused, float64(c.Refused), name)
	bytes := 0
	for i := range l.Lanes {
		h := &l.Lanes[i]
		bytes += h.HeldBytes
		if i+1 < len(l.Lanes) && l.Lanes[i+1].Lane.Member == h.Lane.Member {
			continue // numbers are those of the member's last life; there is one metric for all
		}
		member := h.Lane.Member.String()
		emit(d.confirmed, float64(h.Confirmed), name, member)
		emit(d.durable, float64(h.Durable), name, member)
		emit(d.held, float64(h.Held), name, member)
		emit(d.heldBytes, float64(bytes), name, member)
		bytes = 0
	}
}

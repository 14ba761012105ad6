package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// ofEpoch are the metrics of instances that have epochs.
var ofEpoch = newTable([]string{"instance"},
	gauge("braid_epoch_number", "Number of the epoch.",
		func(e *braid.EpochStatus) float64 { return float64(e.Number) }),
	gauge("braid_epoch_leaders", "How many members lead in the epoch.",
		func(e *braid.EpochStatus) float64 { return float64(len(e.Segments)) }),
	gauge("braid_epoch_banned", "How many voters do not lead in the epoch, because they were suspected.",
		func(e *braid.EpochStatus) float64 { return float64(len(e.Banned)) }),
	gauge("braid_epoch_unsettled", "1 while a membership change is decided, and waits for the next epoch.",
		func(e *braid.EpochStatus) float64 { return truth(e.Unsettled) }),
	counter("braid_epoch_slots_total", "Slots that came into the log here.",
		func(e *braid.EpochStatus) float64 { return float64(e.Slots) }),
	counter("braid_epoch_skipped_total", "Slots that came into the log here and have no value.",
		func(e *braid.EpochStatus) float64 { return float64(e.Skipped) }),
)

// The metrics of a voter in an epoch.
var (
	leads = newFamily(prometheus.GaugeValue, "braid_epoch_leads",
		"1 if a voter leads in the epoch, 0 if not.", "instance", "member")
	decided = newFamily(prometheus.GaugeValue, "braid_segment_decided_index",
		"Slot up to which all slots of a leader are known here to be decided.", "instance", "member")
	lastSlot = newFamily(prometheus.GaugeValue, "braid_segment_last_index",
		"Last slot of a leader in the epoch.", "instance", "member")
	ballot = newFamily(prometheus.GaugeValue, "braid_segment_ballot",
		"Ballot of a leader's slots; 0: the leader proposes itself, more: others do, because they suspect it.",
		"instance", "member")
)

// collectEpoch reads the state of the epoch of an instance, if it has one.
func collectEpoch(e *braid.EpochStatus, name string, emit Emit) {
	if e == nil {
		return
	}
	ofEpoch.collect(e, emit, name)
	for i := range e.Segments {
		s := &e.Segments[i]
		leader := s.Leader.String()
		emit(leads, 1, name, leader)
		emit(decided, float64(s.Decided), name, leader)
		emit(lastSlot, float64(s.Last), name, leader)
		emit(ballot, float64(s.Ballot), name, leader)
	}
	for _, id := range e.Banned {
		emit(leads, 0, name, id.String())
	}
}

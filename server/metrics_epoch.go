package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// epochDescs are the metrics of instances that have epochs.
type epochDescs struct {
	number, leaders, banned, unsettled desc
	slots, skipped                     desc
	leads, decided, last, ballot       desc // of a voter
}

func newEpochDescs() epochDescs {
	return epochDescs{
		number:    newDesc(gauge, "braid_epoch_number", "Number of the epoch.", "instance"),
		leaders:   newDesc(gauge, "braid_epoch_leaders", "How many members lead in the epoch.", "instance"),
		banned:    newDesc(gauge, "braid_epoch_banned", "How many voters do not lead in the epoch, because they were suspected.", "instance"),
		unsettled: newDesc(gauge, "braid_epoch_unsettled", "1 while a membership change is decided, and waits for the next epoch.", "instance"),
		slots:     newDesc(counter, "braid_epoch_slots_total", "Slots that came into the log here.", "instance"),
		skipped:   newDesc(counter, "braid_epoch_skipped_total", "Slots that came into the log here and have no value.", "instance"),
		leads:     newDesc(gauge, "braid_epoch_leads", "1 if a voter leads in the epoch, 0 if not.", "instance", "member"),
		decided:   newDesc(gauge, "braid_segment_decided_index", "Slot up to which all slots of a leader are known here to be decided.", "instance", "member"),
		last:      newDesc(gauge, "braid_segment_last_index", "Last slot of a leader in the epoch.", "instance", "member"),
		ballot:    newDesc(gauge, "braid_segment_ballot", "Ballot of a leader's slots; 0: the leader proposes itself, more: others do, because they suspect it.", "instance", "member"),
	}
}

func (d *epochDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []desc{
		d.number, d.leaders, d.banned, d.unsettled, d.slots, d.skipped, d.leads, d.decided, d.last, d.ballot,
	} {
		ch <- d.Desc
	}
}

// collect tells of the epoch of an instance, under its name.
func (d *epochDescs) collect(e *braid.EpochStatus, name string, emit emitFunc) {
	if e == nil {
		return
	}
	emit(d.number, float64(e.Number), name)
	emit(d.leaders, float64(len(e.Segments)), name)
	emit(d.banned, float64(len(e.Banned)), name)
	emit(d.unsettled, truth(e.Unsettled), name)
	emit(d.slots, float64(e.Slots), name)
	emit(d.skipped, float64(e.Skipped), name)
	for i := range e.Segments {
		s := &e.Segments[i]
		leader := s.Leader.String()
		emit(d.leads, 1, name, leader)
		emit(d.decided, float64(s.Decided), name, leader)
		emit(d.last, float64(s.Last), name, leader)
		emit(d.ballot, float64(s.Ballot), name, leader)
	}
	for _, id := range e.Banned {
		emit(d.leads, 0, name, id.String())
	}
}

package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// instanceDescs are the metrics of each instance of the log.
type instanceDescs struct {
	term, led, leads, committed, applied, lag      desc
	roundsApplied, roundsCommitted, roundsAppended desc
	roundsWanted, skips                            desc
	position                                       desc // of the member: what the instances are woven into
	lanes                                          laneDescs
	epoch                                          epochDescs
}

func newInstanceDescs() instanceDescs {
	return instanceDescs{
		lanes:           newLaneDescs(),
		epoch:           newEpochDescs(),
		term:            newDesc(gauge, "braid_term", "Current term of an instance.", "instance"),
		led:             newDesc(gauge, "braid_instance_has_leader", "1 if a leader of the instance is known here.", "instance"),
		leads:           newDesc(gauge, "braid_instance_is_leader", "1 if this member leads the instance.", "instance"),
		committed:       newDesc(gauge, "braid_instance_commit_index", "Last entry of the instance that is known to be committed.", "instance"),
		applied:         newDesc(gauge, "braid_instance_applied_index", "Last entry of the instance that is applied here.", "instance"),
		lag:             newDesc(gauge, "braid_instance_apply_lag", "Entries of the instance that are committed and not applied here, as they wait for their turn or for the state machine.", "instance"),
		roundsApplied:   newDesc(gauge, "braid_rounds_applied", "Rounds of the instance that are applied here.", "instance"),
		roundsCommitted: newDesc(gauge, "braid_rounds_committed", "Rounds of the instance that are filled by what is committed.", "instance"),
		roundsAppended:  newDesc(gauge, "braid_rounds_appended", "Rounds of the instance that are filled by what is in its log here.", "instance"),
		roundsWanted:    newDesc(gauge, "braid_rounds_wanted", "Up to which round the others have to fill theirs for the sake of the instance.", "instance"),
		skips:           newDesc(counter, "braid_skips_total", "Entries that this member proposed so that others need not wait for the instance.", "instance"),
		position:        newDesc(gauge, "braid_applied_position", "Last position of the global log that is applied here."),
	}
}

func (d *instanceDescs) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []desc{
		d.term, d.led, d.leads, d.committed, d.applied, d.lag, d.roundsApplied, d.roundsCommitted, d.roundsAppended,
		d.roundsWanted, d.skips, d.position,
	} {
		ch <- d.Desc
	}
	d.lanes.describe(ch)
	d.epoch.describe(ch)
}

// collect tells of one instance, the i-th, under its name.
func (d *instanceDescs) collect(st *braid.Status, i int, name string, emit emitFunc) {
	in := &st.Instances[i]
	emit(d.term, float64(in.Term), name)
	emit(d.led, truth(in.Leader != 0), name)
	emit(d.leads, truth(in.Leader == st.Self && st.Self != 0), name)
	emit(d.committed, float64(in.Commit), name)
	d.lanes.collect(in.Lanes, name, emit)
	d.epoch.collect(in.Epoch, name, emit)
	if i >= len(st.Progress) {
		return
	}
	progress := &st.Progress[i]
	emit(d.applied, float64(progress.Applied), name)
	emit(d.lag, float64(progress.Waiting), name)
	if st.Order != braid.OrderNiagara {
		return
	}
	emit(d.roundsApplied, float64(progress.AppliedRounds), name)
	emit(d.roundsCommitted, float64(progress.CommittedRounds), name)
	emit(d.roundsAppended, float64(progress.AppendedRounds), name)
	emit(d.roundsWanted, float64(progress.Wanted.Round), name)
	emit(d.skips, float64(progress.Skips), name)
}

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/braidlog/braid"
)

// ofInstance are the metrics of each instance of the log.
var ofInstance = newTable([]string{"instance"},
	gauge("braid_term", "Current term of an instance.",
		func(s *braid.InstanceStatus) float64 { return float64(s.Term) }),
	gauge("braid_instance_has_leader",
		"1 if this member knows a leader of the instance, and enough active members to decide.",
		func(s *braid.InstanceStatus) float64 { return truth(s.Led()) }),
	gauge("braid_instance_commit_index", "Last entry of the instance that is known to be committed.",
		func(s *braid.InstanceStatus) float64 { return float64(s.Commit) }),
	gauge("braid_preparing_bodies", "Large values that a new leader has to make whole before it leads.",
		func(s *braid.InstanceStatus) float64 { return float64(s.Preparing) }),
	gauge("braid_restriping_members", "On the leader: members that must hold large values whole before members may leave.",
		func(s *braid.InstanceStatus) float64 { return float64(s.Restriping) }),
)

// ofProgress are how much of an instance is in the global log.
var ofProgress = newTable([]string{"instance"},
	gauge("braid_instance_applied_index", "Last entry of the instance that is applied here.",
		func(p *braid.InstanceProgress) float64 { return float64(p.Applied) }),
	gauge("braid_instance_apply_lag", "Entries of the instance that are committed and not applied here, as they wait "+
		"for their turn or for the state machine.",
		func(p *braid.InstanceProgress) float64 { return float64(p.Waiting) }),
)

// ofRounds are the metrics of instances that are merged by rounds.
var ofRounds = newTable([]string{"instance"},
	gauge("braid_rounds_applied", "Rounds of the instance that are applied here.",
		func(p *braid.InstanceProgress) float64 { return float64(p.AppliedRounds) }),
	gauge("braid_rounds_committed", "Rounds of the instance that are filled by what is committed.",
		func(p *braid.InstanceProgress) float64 { return float64(p.CommittedRounds) }),
	gauge("braid_rounds_appended", "Rounds of the instance that are filled by what is in its log here.",
		func(p *braid.InstanceProgress) float64 { return float64(p.AppendedRounds) }),
	gauge("braid_rounds_wanted", "Up to which round the others have to fill theirs for the sake of the instance.",
		func(p *braid.InstanceProgress) float64 { return float64(p.Wanted.Round) }),
	counter("braid_skips_total", "Entries that this member proposed so that others need not wait for the instance.",
		func(p *braid.InstanceProgress) float64 { return float64(p.Skips) }),
)

// A leader's view of its followers, and whether it is one.
var (
	instanceLeads = newFamily(prometheus.GaugeValue, "braid_instance_is_leader",
		"1 if this member leads the instance.", "instance")
	codeK = newFamily(prometheus.GaugeValue, "braid_code_k",
		"On the leader: fragments that make a large value whole that is written now; 1: it is not cut.", "instance")
	peerMatch = newFamily(prometheus.GaugeValue, "braid_peer_match_index",
		"On the leader: the last index that a member is known to hold.", "instance", "member")
	peerInflight = newFamily(prometheus.GaugeValue, "braid_peer_inflight_bytes",
		"On the leader: bytes sent to a member and not acknowledged.", "instance", "member")
	peerLacking = newFamily(prometheus.GaugeValue, "braid_peer_lacking",
		"On the leader: 1 if large values are missing on a member.", "instance", "member")
)

// collectInstances reads the state of each instance.
func collectInstances(st *braid.Status, emit Emit) {
	for i := range st.Instances {
		in := &st.Instances[i]
		name := strconv.FormatUint(uint64(in.Instance), 10)
		ofInstance.collect(in, emit, name)
		emit(instanceLeads, truth(in.Leader == st.Self && st.Self != 0), name)
		collectLanes(in.Lanes, name, emit)
		collectEpoch(in.Epoch, name, emit)
		if i < len(st.Progress) {
			ofProgress.collect(&st.Progress[i], emit, name)
			if st.Order == braid.OrderNiagara {
				ofRounds.collect(&st.Progress[i], emit, name)
			}
		}
		if in.K > 0 {
			emit(codeK, float64(in.K), name)
		}
		for _, p := range in.Peers {
			emit(peerMatch, float64(p.Match), name, p.ID.String())
			emit(peerInflight, float64(p.InflightBytes), name, p.ID.String())
			emit(peerLacking, truth(p.Lacking), name, p.ID.String())
		}
	}
}

package server

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/metrics"
)

// values are those of a metric of a server, by its labels' values.
func values(t *testing.T, s *Server, name string) map[string]float64 {
	t.Helper()
	all, err := metrics.Gatherer{Own: s.cfg.Registry, Process: prometheus.DefaultGatherer}.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += l.GetName() + "=" + l.GetValue() + " "
			}
			out[labels] = m.GetGauge().GetValue()
		}
	}
	return out
}

// TestTheMetricOfAlarmsHasThoseThatAreRaised: also CORRUPT, also after a restart, and no more once they are disarmed.
func TestTheMetricOfAlarmsHasThoseThatAreRaised(t *testing.T) {
	t.Parallel()
	c := startReal(t, 1)
	id := c.leader()
	alarm := func(action pb.AlarmRequest_AlarmAction, member uint64, kind pb.AlarmType) {
		_, err := pb.NewMaintenanceClient(c.client(id).ActiveConnection()).Alarm(testContext(t),
			&pb.AlarmRequest{Action: action, MemberID: member, Alarm: kind})
		require.NoError(t, err)
	}
	now := func() map[string]float64 { return values(t, c.servers[id], "etcd_debugging_server_alarms") }
	const gone = 0xbad
	corrupt := map[string]float64{"alarm_type=CORRUPT server_id=bad ": 1}
	alarm(pb.AlarmRequest_ACTIVATE, uint64(id), pb.AlarmType_NOSPACE)
	alarm(pb.AlarmRequest_ACTIVATE, gone, pb.AlarmType_CORRUPT)
	both := map[string]float64{"alarm_type=NOSPACE server_id=" + id.String() + " ": 1}
	for labels, v := range corrupt {
		both[labels] = v
	}
	require.Equal(t, both, now())
	c.stop(id)
	c.start(id)
	require.Equal(t, id, c.leader())
	require.Equal(t, both, now())
	alarm(pb.AlarmRequest_DEACTIVATE, uint64(id), pb.AlarmType_NOSPACE)
	require.Equal(t, corrupt, now())
	alarm(pb.AlarmRequest_DEACTIVATE, gone, pb.AlarmType_CORRUPT)
	require.Empty(t, now())
}

// TestTheSurvivorOfAMajorityHasNoLeader: without a majority there is no leader, also where the log determines the
// leaders, as with ISS.
func TestTheSurvivorOfAMajorityHasNoLeader(t *testing.T) {
	for _, protocol := range []string{"raft", "multi-paxos", "iss"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := startReal(t, 3, func(c *Config) { c.Node.Protocol = braid.Named(protocol) })
			survivor := c.servers[c.members[0].ID]
			led := func(want float64) {
				t.Helper()
				for metric, labels := range map[string]string{
					"etcd_server_has_leader": "", "braid_instance_has_leader": "instance=1 ",
				} {
					eventually(t, metric, func() bool {
						now, ok := values(t, survivor, metric)[labels]
						return ok && now == want
					})
				}
			}
			putUntil(t, testContext(t), c.client(c.members[0].ID), "k", "v")
			led(1)
			for _, m := range c.members[1:] {
				c.stop(m.ID)
			}
			led(0)
			for _, m := range c.members[1:] {
				c.start(m.ID)
			}
			led(1)
		})
	}
}

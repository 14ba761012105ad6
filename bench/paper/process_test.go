package paper

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A cluster of processes does the same work as one in this process, and reports its members' resource use. A killed
// member comes back.
func TestRealProcesses(t *testing.T) {
	t.Parallel()
	s := lcrSetup("lcr", 3)
	s.Heartbeat, s.Processes = 100*time.Millisecond, true
	target := openReal(t, s)
	costs := []Metric{LeaderCPU, FollowerCPU, LeaderLoad, FollowerLoad, LeaderHeap, FollowerHeap, LeaderResident,
		FollowerResident, CPU, Egress}
	for _, w := range []Work{
		{For: 300 * time.Millisecond, Clients: 6, At: AtMembers, Blind: 0.5, Net: "latency=10ms"},
		{For: 300 * time.Millisecond, Rate: 200, Inflight: 100, At: AtMembers, Blind: 0.5},
		{For: 300 * time.Millisecond, Clients: 6, At: AtMembers, Down: 1},
	} {
		f := runReal(t, target, w)
		if f[Throughput] <= 0 || f[P50] <= 0 || w.Net != "" && (f[PlainP50] < 20 || f[BlindP50] < 20) {
			t.Errorf("%+v: %v", w, f)
		}
		for _, m := range costs {
			if v, ok := f[m]; w.Down == 0 && (!ok || v <= 0) {
				t.Errorf("%+v: %s is %v (measured: %v)", w, m, v, ok)
			}
		}
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	cluster := target.(*braidTarget)
	p := cluster.members[0].node.(*process)
	if err := p.Err(); err != nil {
		t.Errorf("a member that runs: error %v", err)
	}
	if _, err := p.Ask(t.Context(), 1, nil); err == nil {
		t.Error("members of different processes were asked something")
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if s := p.Status(); s.Self != 0 || p.Err() == nil {
		t.Errorf("a killed member's status is %+v, error %v", s, p.Err())
	}
	if err := cluster.Check(t.Context()); err == nil {
		t.Error("nobody missed a member's digest")
	}
	cluster.members[0].node = nil
}

func TestProcessesThatDoNotStart(t *testing.T) {
	s := &seat{Setup: Setup{Protocol: "raft"}}
	for _, c := range []struct {
		command []string
		want    string
	}{
		{nil, "nothing says how"}, {[]string{"/nonexistent"}, "/nonexistent"}, {[]string{"true"}, "does not start"},
		{memberCommand, "does not start"}, // there is no member 0
	} {
		if p, err := startProcess(c.command, s); err == nil || p != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.command, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if target, err := Open(nil)(ctx, t.TempDir(), Setup{Processes: true}); err == nil {
		t.Errorf("a cluster %v of processes that nobody can start", target)
	}
	if err := ServeMember(strings.NewReader("{"), nil); err == nil {
		t.Error("a member that does not know which one it is")
	}
}

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/server"
)

// madeUp is the advice of a cluster of four members. One does not report.
func madeUp() server.Advised {
	iss := server.AdvisedCandidate{Protocol: "iss", Settings: map[string]string{"relays": "2", "quorums": "4/2"}}
	raft := func(leader string) server.AdvisedCandidate {
		return server.AdvisedCandidate{Protocol: "raft", Leader: leader}
	}
	report := func(id string, trips map[string]float64) server.AdvisedMember {
		m := server.AdvisedMember{ID: id, Seconds: 1, Commands: 1200, Bytes: 3 << 20, Blind: 0.1, Large: 0.99,
			Latency: 0.0031, Waiting: 3.72, Loops: []float64{0.2, 0.05}, Apply: 0.04, CPU: 0.12, Disk: 0.3,
			Syncs: 210, Unapplied: 7}
		for _, to := range []string{"1", "2", "3"} {
			if trip, linked := trips[to]; linked {
				m.Links = append(m.Links, server.AdvisedLink{To: to, Trip: trip, Bytes: 1 << 20, Queued: 512})
			}
		}
		return m
	}
	return server.Advised{
		By: "1", At: time.Date(2026, 11, 28, 10, 20, 0, 0, time.UTC), Mode: "advise", Profile: 3,
		Names: map[string]string{"1": "m1", "2": "m2", "4": "m4"},
		Members: []server.AdvisedMember{report("1", map[string]float64{"2": 0.08, "3": 0.1204}),
			report("2", map[string]float64{"1": 0.0801, "3": 0.000212}), {ID: "3"}},
		Costs: []server.AdvisedCost{
			{AdvisedCandidate: raft("1"), Throughput: 1200.4, Latency: 0.0031, Gain: 1, Limit: "leader's link"},
			{AdvisedCandidate: iss, Throughput: 1700, Latency: 1.2345, Gain: 1.416, Limit: "round trips"},
			{AdvisedCandidate: raft("3"), Throughput: 900, Latency: 0.004, Gain: 0.75},
			{AdvisedCandidate: server.AdvisedCandidate{Protocol: "craft"}, Excluded: "a member is missing"},
		},
	}
}

const madeUpTables = `leader m1 decided at 2026-11-28 10:20:00, under profile 3, fit=advise

MEMBER  COMMANDS/S  BYTES/S  BLIND  LARGE  LATENCY  IN PROGRESS  LOOPS   APPLY  DISK  CPU  SENT/S  QUEUED  UNAPPLIED
m1      1200        3 MiB    10%    99%    3.1ms    3.7          20% 5%  4%     30%   12%  2 MiB   1 KiB   7
m2      1200        3 MiB    10%    99%    3.1ms    3.7          20% 5%  4%     30%   12%  2 MiB   1 KiB   7
3       0           0 B      0%     0%     -        0.0          -       0%     0%    0%   0 B     0 B     0
m4      no report

ROUND TRIP  3        m1      m2
m1          120.4ms  -       80ms
m2          212µs    80.1ms  -
3           -        -       -

PROTOCOL       SETTINGS              LEADER  THROUGHPUT  LATENCY  GAIN   LIMIT          EXCLUDED
raft (active)  -                     m1      1200/s      3.1ms    1.00×  leader's link  -
iss            quorums=4/2 relays=2  -       1700/s      1.23s    1.42×  round trips    -
raft           -                     3       900/s       4ms      0.75×  -              -
craft          -                     -       -           -        -      -              a member is missing

`

// advised runs braid advise against a member with an advice.
func advised(t *testing.T, answer any, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	m := startSwitchable(t, map[string]any{"Advise": answer})
	return call(append([]string{"advise", "--endpoints=" + m.endpoint}, args...)...)
}

func TestAdvise(t *testing.T) {
	iss := madeUp().Costs[1].AdvisedCandidate
	for want, change := range map[string]func(a *server.Advised){
		"no wish: the best change, iss quorums=4/2 relays=2, would gain 1.42×; that is not enough, or not for long " +
			"enough yet\n": func(*server.Advised) {},
		"no wish: no change would gain anything\n": func(a *server.Advised) { a.Costs[1].Excluded = "-" },
		"no wish: nothing can be compared with the active profile now, see EXCLUDED\n": func(a *server.Advised) {
			a.Costs[1].Excluded, a.Costs[2].Excluded = "-", "-"
		},
		"wish: would gain 1.42× with iss quorums=4/2 relays=2: all write alike\nit waits: changed 10s ago\n" +
			"by hand: braid switch iss quorums=4/2 relays=2\n": func(a *server.Advised) {
			a.Wish = &server.AdvisedWish{AdvisedCandidate: iss, Gain: 1.416, Reason: "all write alike"}
			a.Waits = "changed 10s ago"
		},
		"wish: would gain 1.5× with raft led by m2: clients moved\nby hand: braid ctl move-leader 2\n" +
			"not before 2026-11-28 10:30:00: iss quorums=4/2 relays=2, which was taken " +
			"back\n": func(a *server.Advised) {
			to := server.AdvisedCandidate{Protocol: "raft", Leader: "2"}
			a.Wish = &server.AdvisedWish{AdvisedCandidate: to, Gain: 1.5, Reason: "clients moved"}
			a.Waits = ""
			a.Avoids = []server.AdvisedAvoid{{AdvisedCandidate: iss, Until: a.At.Add(10 * time.Minute)}}
		},
	} {
		a := madeUp()
		change(&a)
		stdout, stderr, code := advised(t, &a)
		require.Empty(t, stderr)
		require.Equal(t, exitOK, code)
		if !strings.Contains(want, "nothing can be") && !strings.Contains(want, "no change would") { // less is excluded
			require.Equal(t, madeUpTables+want, stdout)
		}
		require.True(t, strings.HasSuffix(stdout, "\n\n"+want), stdout)
	}
	a := madeUp()
	a.Mode = "on"
	a.Wish = &server.AdvisedWish{AdvisedCandidate: a.Costs[0].AdvisedCandidate, TakesBack: true, Reason: "no gain"}
	stdout, _, _ := advised(t, &a)
	require.Contains(t, stdout, "wish: goes back to raft led by m1: no gain\nthe leader makes the change\n")
}

func TestAdviceAsJSON(t *testing.T) {
	want := madeUp()
	iss := want.Costs[1].AdvisedCandidate
	want.Wish = &server.AdvisedWish{AdvisedCandidate: iss, Gain: 1.4, Reason: "all write alike"}
	want.Avoids = []server.AdvisedAvoid{{AdvisedCandidate: iss, Until: want.At}}
	stdout, _, code := advised(t, &want, "--json")
	require.Equal(t, exitOK, code)
	var got server.Advised
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Equal(t, want, got)
}

func TestNoAdvice(t *testing.T) {
	_, stderr, code := advised(t, grpcstatus.Error(codes.FailedPrecondition, "braid: advise: the setting fit is off"))
	require.Equal(t, exitFailed, code)
	require.Equal(t, "braid advise: the setting fit is off\n", stderr)
}

// TestStatusOfFit: the line is that of the member that heard of a decision last.
func TestStatusOfFit(t *testing.T) {
	early, late := time.UnixMilli(1000), time.UnixMilli(2000)
	member := func(id string, f status.Fit) status.Member {
		return status.Member{Name: "m" + id, ID: id, Ready: true, Fit: f, Members: []status.Peer{{ID: "2", Name: "m2"}}}
	}
	wish := status.Wish{Protocol: "raft", Settings: map[string]string{"lanes": "true"}, Leader: "2", Gain: 1.4,
		Reason: "blind"}
	back, restore := wish, wish
	back.TakesBack, back.Settings = true, map[string]string{"lanes": "true", "fit-avoid": "iss:1@2"}
	restore.Restores = true
	for want, fits := range map[string][]status.Fit{
		"":         {{}},
		"fit: off": {{}, {Mode: "off"}},
		"fit: advise; the leader has not decided yet": {{Mode: "advise"}},
		"fit: advise; no change would gain enough":    {{Mode: "on"}, {Mode: "advise", At: &early}},
		"fit: advise; would gain 1.4× with raft lanes=true led by m2: blind": {{Mode: "on", At: &early},
			{Mode: "advise", At: &late, Wish: &wish}, {Mode: "on"}},
		"fit: advise; restores service with raft lanes=true led by m2: blind": {{Mode: "advise", At: &late,
			Wish: &restore}},
		"fit: on; goes back to raft lanes=true led by m2: blind; waits: soon": {{Mode: "on", At: &late, Wish: &back,
			Waits: "soon"}},
	} {
		var members []status.Member
		for i, f := range fits {
			members = append(members, member(string(rune('1'+i)), f))
		}
		var lines []string
		if want != "" {
			lines = []string{want}
		}
		require.Equal(t, lines, table(t, "fit: ", members...))
	}
}

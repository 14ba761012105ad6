package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sim"
)

func TestSim(t *testing.T) {
	stdout, stderr, code := call("sim", "--nodes", "3", "--seeds", "1-5")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "raft × 3: 5 of 5 seeds, 0 failed")

	stdout, stderr, code = call("sim", "--protocol", "craft", "--nodes", "5", "--seeds", "1-3")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "craft × 5: 3 of 3 seeds, 0 failed")
	require.Contains(t, stdout, "coded entries")

	stdout, stderr, code = call("sim", "--protocol", "niagara", "--instances", "2", "--placement", "code",
		"--seeds", "1-3")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "niagara × 3: 3 of 3 seeds, 0 failed")

	stdout, stderr, code = call("sim", "--nodes", "3", "--net", "regions=us-east-1+eu-west-1;1~2:latency=60ms",
		"--seeds", "1-3")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "raft × 3: 3 of 3 seeds, 0 failed")

	stdout, _, code = call("sim", "--nodes", "2", "--seeds", "7", "--json")
	require.Zero(t, code)
	var sum sim.Summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &sum))
	require.Equal(t, 1, sum.Runs)
	require.Equal(t, 2, sum.Nodes)
	require.Empty(t, sum.Failed)
}

func TestSimSaysHowToReplayAFailure(t *testing.T) {
	stdout, stderr, code := call("sim", "--nodes", "3", "--seeds", "1-100", "--mutant", "truncate-always", "--shrink")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "violated a promise")
	_, replay, found := strings.Cut(stdout, "replay: braid ")
	require.True(t, found, stdout)
	replay, _, _ = strings.Cut(replay, "\n")

	stdout, stderr, code = call(strings.Fields(replay)...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, "VIOLATION seed")
	require.Contains(t, stdout, " → ")
	require.Contains(t, stderr, "violation: seed")
}

func TestSimWrongUse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--protocol paxos",
			`protocol "paxos" cannot be simulated; there is: ` +
				`[raft craft rs-raft niagara multi-raft lcr multi-paxos iss epaxos wpaxos slotpaxos]`},
		{"--nodes 0", "0 nodes: want 1 … 9"},
		{"--placement rows", "there is: copy, code"},
		{"--protocol craft --placement copy", "there is: code"},
		{"--protocol rs-raft --nodes 3", "quorums for 5 and 7"},
		{"--protocol niagara --instances 17", "17 instances: want 1 … 16"},
		{"--instances 3", "order single has one"},
		{"--order iss", "there is: single, niagara"},
		{"--seeds 5-1", "the first is after the last"},
		{"--seeds many", `--seeds "many"`},
		{"--seeds 1-3 --trace", "--trace prints one seed"},
		{"--mutant none", "forget-vote"},
		{"--without rain", "partition"},
		{"--net bandwidth=1mbit", "latency, jitter and regions alone"},
		{"--net regions=nowhere", "is not known"},
		{"--seeds 1 --trace-filter x", "--trace-filter needs --trace"},
		{"--seeds 1 --trace-diagram", "--trace-diagram needs --trace"},
		{"--seeds 1 --trace --trace-filter (", "--trace-filter: error parsing regexp"},
		{"now", "unknown command"},
	} {
		_, stderr, code := call(append([]string{"sim"}, strings.Fields(c.args)...)...)
		require.Equal(t, exitUsage, code, "%s: %s", c.args, stderr)
		require.Contains(t, stderr, c.want, c.args)
	}
}

func TestSimLists(t *testing.T) {
	stdout, _, code := call("sim", "--list")
	require.Zero(t, code)
	require.Contains(t, stdout, "protocols: raft ")
	for _, want := range []string{"one-way +one link works in one direction only", "links +messages are lost",
		`forget-vote +raft\.\S+ +\S+`, `commit-old-term +raft\.\S+ +\S+`} {
		require.Regexp(t, "(?m)^"+want, stdout)
	}
	for _, f := range sim.FaultKinds() {
		require.NotEmpty(t, f.Does, f.Name)
	}
	for _, m := range sim.Hunts() {
		require.NotEmpty(t, m.Does, m.Name)
	}
}

// A trace may be filtered: the lines that match are those of the whole trace.
func TestSimFiltersATrace(t *testing.T) {
	whole, stderr, code := call("sim", "--nodes=3", "--seeds=1", "--trace")
	require.Zero(t, code, stderr)
	some, stderr, code := call("sim", "--nodes=3", "--seeds=1", "--trace", "--trace-filter=FAULT|is leader")
	require.Zero(t, code, stderr)
	var want []string
	lines := strings.Split(strings.TrimRight(whole, "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		if strings.Contains(line, "FAULT") || strings.Contains(line, "is leader") {
			want = append(want, line)
		}
	}
	require.NotEmpty(t, want)
	require.Equal(t, strings.Join(append(want, lines[len(lines)-1]), "\n"), strings.TrimRight(some, "\n"))

	broken, _, code := call("sim", "--nodes=3", "--seeds=1-100", "--mutant=truncate-always")
	require.Equal(t, exitFailed, code)
	_, replay, _ := strings.Cut(broken, "replay: braid ")
	replay, _, _ = strings.Cut(replay, "\n")
	some, _, code = call(append(strings.Fields(replay), "--trace-filter=matches nothing")...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, some, "VIOLATION seed")
	require.NotContains(t, some, " → ")
}

// The diagram of a trace has its leaders, messages and faults, and is the same each time. Its lines fit.
func TestSimDrawsATrace(t *testing.T) {
	for _, c := range []struct {
		args  string
		wants []string
	}{
		{"--nodes=3 --seeds=17", []string{
			`─ PreVote ─+▶│`, `✗─+ \w+ ─`, `★ LEADER of term 1 `, `║─+ Append ─+▶│ .*\[1 noop\]`,
			`══ FAULT \d starts ═`, `✝ is down`, `○ starts`, `▼ client \d+ asks: op \d+ append`, `● applies op \d+: `,
			`▲ client \d+: op \d+ done`, `… \d+ repeated: .*\d+ Heartbeat`,
		}},
		{"--protocol=iss --nodes=3 --seeds=3", []string{
			`◀─+ Accept ─+│  term 1 segment 3 `, `─ Accepted ─+▶│`, `▷ sends \d: `,
		}},
		{"--protocol=lcr --nodes=5 --seeds=2", []string{`  1 +2 +3 +4 +5$`, `◀─+ Lane ─`, `★ LEADER of term \d `}},
		{"--nodes=1 --seeds=1", []string{`  1$`, `★ LEADER of term 1`}},
	} {
		args := strings.Fields("sim --trace --trace-diagram " + c.args)
		out, stderr, code := call(args...)
		require.Zero(t, code, stderr)
		for _, want := range c.wants {
			require.Regexp(t, "(?m)"+want, out, c.args)
		}
		lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
		for _, line := range lines[:len(lines)-1] {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 120, line)
		}
		again, _, _ := call(args...)
		require.Equal(t, out, again)
	}

	some, stderr, code := call("sim", "--nodes=3", "--seeds=17", "--trace", "--trace-diagram",
		"--trace-filter=is leader")
	require.Zero(t, code, stderr)
	require.Contains(t, some, "★ LEADER of term 1")
	require.NotContains(t, some, "▶│")
}

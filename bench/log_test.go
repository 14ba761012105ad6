package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol/setting"
)

// Every contestant must be correct in every mode, and have every figure.
func TestContestants(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	for _, name := range append(Protocols(false), Limit) {
		for _, l := range []Load{{Inflight: 2000}, {Proposers: 50}} {
			t.Run(name+"/"+l.Mode(), func(t *testing.T) {
				t.Parallel()
				l.Payload, l.Warmup, l.Duration = 16, 100*time.Millisecond, time.Second
				dir := t.TempDir()
				r, err := RunLog(context.Background(), LogConfig{Protocol: name, Nodes: 3, Load: l, Dir: dir,
					Settings: settingsOf(name)})
				if err != nil {
					t.Fatal(err)
				}
				checkResult(t, r)
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Errorf("the run left %v behind", left)
				}
			})
		}
	}
}

// settingsOf are the settings of a contestant in tests.
func settingsOf(protocol string) Settings {
	return Settings{Values: setting.MustParse("instances=3")}.Of(protocol)
}

// leastLed is the least share of commands that one member leads, of three.
func leastLed(protocol string) float64 {
	if protocol == "multi-raft" || protocol == "wpaxos" {
		return 0.2 // about a third, by the distribution of keys to groups
	}
	return 1
}

func checkResult(t *testing.T, r *LogResult) {
	t.Helper()
	if !r.Verified {
		t.Errorf("violations: %v", r.Violations)
	}
	if r.Errors > 0 {
		t.Errorf("%d errors, for example %s", r.Errors, r.ErrorSample)
	}
	l := r.LatencyMS
	if !(l.P50 > 0 && l.P50 <= l.P90 && l.P90 <= l.P99 && l.P99 <= l.P999 && l.P999 <= l.Max) {
		t.Errorf("latencies %+v", l)
	}
	for _, f := range []struct {
		name       string
		value, low float64
	}{
		{"throughput", r.ThroughputPS, 10}, {"CPU", r.CPUMicrosOp, 0.01}, {"fsyncs", r.FsyncsPS, 1},
		{"leader's egress", r.LeaderEgress, 2 * 16 * leastLed(r.Protocol)}, // two followers need every command
	} {
		if f.value < f.low {
			t.Errorf("%s is %v, less than %v", f.name, f.value, f.low)
		}
	}
	if r.DiskBytesOp < 3*16 && !inMemory(os.TempDir()) {
		t.Errorf("%v bytes a command on three disks", r.DiskBytesOp)
	}
	if want := float64(r.Commands) / r.DurationS; r.ThroughputPS < want*0.99 || r.ThroughputPS > want*1.01 {
		t.Errorf("throughput %v, but %v commands in %v s", r.ThroughputPS, r.Commands, r.DurationS)
	}
}

func TestLargeCommands(t *testing.T) {
	testsize.Long(t)
	all := append(Protocols(false), Limit)
	for _, name := range testsize.Pick(testsize.Processes, all[:1], all[:2], all) {
		t.Run(name, func(t *testing.T) {
			l := Load{Payload: 256 << 10, Inflight: 8, Duration: 700 * time.Millisecond}
			r, err := RunLog(context.Background(), LogConfig{Protocol: name, Nodes: 3, Load: l, Dir: t.TempDir(),
				Settings: settingsOf(name)})
			if err != nil {
				t.Fatal(err)
			}
			// Commands in progress at the start of the measurement were sent before it. The slower follower may be
			// behind by the bytes in flight to it: 32 MiB at most, including bytes that wait to be written.
			copied := float64(l.Payload) * float64(r.Commands-int64(l.Inflight))
			least := copied + max(0, copied-32<<20)
			if name == "rs-raft" {
				least /= 3 // each follower gets one of three fragments
				most := float64(l.Payload) * float64(r.Commands+int64(l.Inflight))
				if r.LeaderEgress*float64(r.Commands) > most {
					t.Errorf("egress %v a command of %d bytes, in fragments", r.LeaderEgress, l.Payload)
				}
			}
			least *= leastLed(name)
			if !r.Verified || r.Errors > 0 || r.LeaderEgress*float64(r.Commands) < least {
				t.Errorf("verified %v, %d errors, egress %v: %v", r.Verified, r.Errors, r.LeaderEgress, r.Violations)
			}
		})
	}
}

// Fragments save bandwidth as expected, of large commands only.
func TestCommandsInFragments(t *testing.T) {
	testsize.Long(t)
	// 4/3 of a command, and those that go whole while a follower is late; 4 small ones and their overhead.
	for payload, most := range map[int]float64{256 << 10: 3.5, 100: 50} {
		l := Load{Payload: payload, Proposers: 8, Warmup: 500 * time.Millisecond, Duration: 500 * time.Millisecond}
		r, err := RunLog(context.Background(), LogConfig{Protocol: "craft", Nodes: 5, Load: l, Dir: t.TempDir(),
			Settings: Settings{Values: setting.MustParse("code-k=3")}})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Verified || r.Errors > 0 || r.LeaderEgress > most*float64(payload) || r.LeaderEgress < float64(payload) {
			t.Errorf("%d bytes: verified %v, %d errors, egress %v", payload, r.Verified, r.Errors, r.LeaderEgress)
		}
	}
	c := LogConfig{Protocol: "raft", Nodes: 3, Load: Load{Payload: 16, Inflight: 1, Duration: time.Second},
		Settings: Settings{Values: setting.MustParse("code-k=2")}}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "has no use for it") {
		t.Errorf("fragments of raft: error %v", err)
	}
}

// The names of fields are stable for other programs.
func TestResultFields(t *testing.T) {
	r := &LogResult{Figures: Figures{Protocol: "raft", Nodes: 3, Payload: 16, ThroughputPS: 5}, Mode: "window",
		Inflight: 9, Verified: true}
	var buf bytes.Buffer
	if err := WriteJSON(&buf, r); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(buf.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("protocol nodes payload throughput_per_s latency_ms errors cpu_us_per_op " +
		"leader_egress_bytes_per_op disk_bytes_per_op fsyncs_per_s inflight duration_s commands machine date " +
		"stolen_cpu_percent verified") {
		if _, ok := fields[name]; !ok {
			t.Errorf("the JSON lacks %q: %s", name, buf.String())
		}
	}
	latency, _ := fields["latency_ms"].(map[string]any)
	for _, name := range strings.Fields("p50 p90 p99 p999 max") {
		if _, ok := latency[name]; !ok {
			t.Errorf("latency_ms lacks %q", name)
		}
	}
	buf.Reset()
	r.WriteText(&buf)
	if !strings.Contains(buf.String(), "throughput") || !strings.Contains(buf.String(), "verified") {
		t.Errorf("the text says %q", buf.String())
	}
}

func TestDataDir(t *testing.T) {
	dir, remove, err := DataDir(t.TempDir())
	if inMemory(os.TempDir()) {
		if err == nil || !strings.Contains(err.Error(), "in memory") {
			t.Fatalf("a directory in memory was taken: %q, %v", dir, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if fs := Filesystem("/dev/shm"); fs == "tmpfs" {
		if _, _, err := DataDir("/dev/shm"); err == nil || !strings.Contains(err.Error(), "tmpfs") {
			t.Errorf("a directory in memory: error %v", err)
		}
	}
}

// Idle members use CPU and send heartbeats, and the medians have both.
func TestIdleMembers(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	load := Load{Idle: true, Payload: 16, Warmup: 200 * time.Millisecond, Duration: time.Second}
	c, err := RunLogContest(context.Background(),
		[]LogConfig{{Protocol: "raft", Nodes: 3, Load: load, Dir: t.TempDir(), Settings: settingsOf("raft")}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Results[0]
	if r.Idle == nil || r.Mode != "idle" || r.Commands != 0 || r.Rounds != 2 {
		t.Fatalf("not the result of idle members: %+v", r)
	}
	if i := r.Idle; i.CPUPercent <= 0 || i.EgressBS < 1 || i.CPUSpread[0] > i.CPUPercent ||
		i.CPUSpread[1] < i.CPUPercent {
		t.Errorf("figures %+v", *i)
	}
	var text bytes.Buffer
	c.WriteText(&text)
	if !strings.Contains(text.String(), "3 idle members in one process") {
		t.Errorf("the text is %s", text.String())
	}
	load.Rate = 1
	if err := load.Validate(); err == nil {
		t.Error("an idle load has a rate")
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol/setting"
)

// Bad input must be refused at once, with an error that names the fault.
func TestBenchBadInput(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"kv --batch 50 --write-ratio 0.5", exitUsage, "they cannot be mixed with other requests"},
		{"kv --batch 50 --check", exitUsage, "they are not checked"},
		{"log --payload 0", exitUsage, "payload of 0 bytes"},
		{"log --payload 7", exitUsage, "at least 8"},
		{"log --protocol rafft", exitUsage, `unknown protocol "rafft"`},
		{"log --peer zookeeper", exitUsage, `unknown protocol "zookeeper"`},
		{"log --nodes 0", exitUsage, "0 members"},
		{"log --proposers 3 --rate 5", exitUsage, "closed loop"},
		{"log --proposers 3 --inflight 5", exitUsage, "either proposers or inflight"},
		{"log --inflight 0", exitUsage, "--inflight 0"},
		{"log --rate -3", exitUsage, "--rate -3"},
		{"log --rate 0", exitUsage, "--rate 0"},
		{"log --rate a,b", exitUsage, `"a" must be a positive number`},
		{"log --rate 10,,20", exitUsage, `"" must be a positive number`},
		{"log --rate NaN", exitUsage, "positive number"},
		{"log --rate 10,Inf", exitUsage, "must be positive"},
		{"log --rate 20,10", exitUsage, "rate 10 after 20: the rates must rise"},
		{"log --rate 20,20", exitUsage, "the rates must rise"},
		{"log --rate 10,20 --proposers 3", exitUsage, "closed loop"},
		{"log --curve --proposers 3", exitUsage, "--curve and --proposers"},
		{"log --curve --rate 10,20", exitUsage, "--curve finds its rates by itself"},
		{"log --curve --rate 0", exitUsage, "--rate 0"},
		{"log --curve --max-p99 0s", exitUsage, "99th percentile"},
		{"log --curve --rounds 0", exitUsage, "--rounds 0"},
		{"log --curve --peer zookeeper", exitUsage, `unknown protocol "zookeeper"`},
		{"log --rate 10 --out somewhere", exitUsage, "--out is for several rates"},
		{"log --duration -1s", exitUsage, "duration"},
		{"log --rounds 0", exitUsage, "--rounds 0"},
		{"log --no-pipeline --pipeline-depth 4", exitUsage, "no pipeline"},
		{"log --instances 4", exitUsage, "instances 4: protocol raft has one"},
		{"log --protocol niagara --instances 65", exitUsage, "instances 65: not in 0…64"},
		{"log --protocol niagara --instances -1", exitUsage, "instances -1"},
		{"log --leaders spread", exitUsage, "leaders spread: protocol raft has one leader"},
		{"log --protocol niagara --leaders apart", exitUsage, `leaders apart: it is together or spread`},
		{"log --placement code", exitUsage, "placement code: protocol raft is measured with placement copy"},
		{"log --protocol niagara --placement rs", exitUsage,
			`placement "rs" is not for protocol niagara; there is: copy, code`},
		{"log --protocol niagara --code-k 2", exitUsage, "code-k 2: placement copy has no use for it"},
		{"log --protocol niagara --instances 4 --peer zookeeper", exitUsage, `unknown protocol "zookeeper"`},
		{"log --max-batch-commands -1", exitUsage, "batches of -1 commands"},
		{"log --max-batch-commands 1 --peer etcd-raft", exitUsage, "etcd-raft has no such limit"},
		{"log --cards 17", exitUsage, "17 network cards"},
		{"log --cards 2 --net nics=3", exitUsage, "say it once"},
		{"log --net latency=5", exitUsage, "--net: "},
		{"log --net latency=5ms --peer etcd-raft", exitUsage, "those of etcd-raft are not emulated"},
		{"log --net latency=5ms --peer limit", exitUsage, "those of limit are not emulated"},
		{"log --protocol limit --no-batching", exitUsage, "limit has no settings"},
		{"log --payload 1048576 --inflight 1000000", exitUsage, "MiB"},
		{"log --colour", exitUsage, "--colour"},
		{"log more", exitUsage, `"more"`},
		{"kv --clients 0", exitUsage, "0 clients"},
		{"kv --conns 200 --clients 100", exitUsage, "200 connections"},
		{"kv --consistency x", exitUsage, "must be l or s"},
		{"kv --write-ratio 2", exitUsage, "write ratio"},
		{"kv --cert only.pem", exitUsage, "belong together"},
		{"kv --cacert missing.pem", exitUsage, "missing.pem"},
		{"kv --peer zookeeper", exitUsage, `unknown server "zookeeper"`},
		{"kv --peer limit --check", exitUsage, "limit: it stores nothing, so there is no history to check"},
		{"kv --peer limit --ycsb F", exitUsage, "limit: it answers puts, and gets of one key"},
		{"kv --endpoints 127.0.0.1:1 --peer etcd", exitUsage, "--peer is for servers"},
		{"kv --mix read=150%", exitUsage, "share 1.5 of read"},
		{"kv --mix read=-5%,update=105%", exitUsage, "share -0.05 of read"},
		{"kv --mix read=50%,update=40%", exitUsage, "add up to 0.9, not to 1"},
		{"kv --mix fly=100%", exitUsage, `unknown operation "fly"`},
		{"kv --mix read=1 --ycsb A", exitUsage, "--ycsb and --mix"},
		{"kv --ycsb G", exitUsage, `unknown YCSB workload "G"`},
		{"kv --ycsb E --check --protocol raft-map", exitUsage, "the map service has none"},
		{"kv --check --consistency s --write-ratio 0.5", exitUsage, "not linearizable"},
		{"kv --check --val-size 4", exitUsage, "to tell them apart"},
		{"kv --check --check-limit 0s", exitUsage, "check for 0s"},
		{"kv --distribution weird", exitUsage, `unknown distribution "weird"`},
		{"kv --distribution zipf:-1", exitUsage, "skew -1"},
		{"kv --distribution conflict:200%", exitUsage, "share 2"},
		{"kv --distribution normal:colour=1", exitUsage, `unknown parameter "colour"`},
		{"kv --val-size 0", exitUsage, "values of 0 bytes"},
		{"kv --val-size 17MiB", exitUsage, "at most 16777216"},
		{"kv --val-size 64-16", exitUsage, "the smaller size comes first"},
		{"kv --val-size large", exitUsage, `size "large"`},
		{"kv --key-size 2", exitUsage, "too short"},
		{"kv --key-size 2000000", exitUsage, "at most 1048576"},
		{"kv --key-space 0", exitUsage, "0 keys"},
		{"kv --scan-limit 100000", exitUsage, "scans of 100000 keys"},
		{"kv --ycsb E --val-size 1MiB", exitUsage, "in one answer"},
		{"kv --rate 0", exitUsage, "--rate 0"},
		{"kv --rate 5 --throttle 5", exitUsage, "give one of the two"},
		{"kv --throttle -5", exitUsage, "throttle -5"},
		{"kv --instances 4", exitUsage, "instances 4: protocol raft has one instance"},
		{"kv --protocol niagara --leaders apart", exitUsage, `leaders apart`},
		{"kv --protocol etcd --instances 2", exitUsage, "etcd: protocol"},
		{"kv --endpoints 127.0.0.1:1 --instances 2", exitUsage, "--instances is for servers"},
		{"kv --nodes 99 --protocol raft", exitUsage, "99 members"},
		{"kv --net latency=5", exitUsage, "--net: "},
		{"kv --net latency=5ms --peer etcd", exitUsage, "those of etcd are not emulated"},
		{"kv --endpoints 127.0.0.1:1 --net latency=5ms", exitUsage, "--net is for servers"},
		{"kv --endpoints=", exitUsage, "--endpoints: none is given"},
		{"kv --endpoints 127.0.0.1:1", exitFailed, "127.0.0.1:1 is unreachable"},
		{"kv --endpoints nonsense", exitFailed, "must have a host and a port"},
		{"watch --watchers 0", exitUsage, "0 watchers"},
		{"watch --streams 30 --watchers 20", exitUsage, "30 streams for 20 watchers"},
		{"watch --history 1", exitUsage, "a history of 1 puts"},
		{"watch --duration 0s", exitUsage, "duration 0s"},
		{"watch --peer raft-map", exitUsage, "raft-map: it does not have etcd's API"},
		{"watch --peer limit", exitUsage, "limit: it stores nothing"},
		{"watch --clients 0", exitUsage, "0 clients"},
		{"kubernetes --objects 0", exitUsage, "0 nodes"},
		{"kubernetes --pods-per-node -1", exitUsage, "-1 pods"},
		{"kubernetes --churn 0", exitUsage, "churn 0"},
		{"kubernetes --rate -1", exitUsage, "rate -1"},
		{"kubernetes --warmup 0s", exitUsage, "the warm-up must be positive"},
		{"kubernetes --peer zookeeper", exitUsage, `unknown server "zookeeper"`},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"bench"}, strings.Fields(c.args)...), &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("braid bench %s: exit code %d, output %q, error %q; want exit code %d and %q", c.args, code, out.String(),
				errs.String(), c.code, c.want)
		}
	}
}

// diskDir is a directory for a benchmark, which refuses directories in memory.
func diskDir(t *testing.T) string {
	dir := t.TempDir()
	if fs := bench.Filesystem(dir); fs == "tmpfs" || fs == "ramfs" {
		return "."
	}
	return dir
}

func TestBenchLogJSON(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(append(strings.Fields("bench log --duration 1s --warmup 100ms --inflight 1000 --json --data"), diskDir(t)),
		&out, &errs)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var r bench.LogResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if r.Protocol != "raft" || r.Nodes != 3 || r.Payload != 16 || r.ThroughputPS <= 0 || !r.Verified {
		t.Errorf("result %+v", r)
	}
}

// A curve of a real cluster: a rate that is too high is found, and the figures are kept.
func TestBenchLogCurve(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir, out := diskDir(t), t.TempDir()
	var stdout, stderr bytes.Buffer
	args := strings.Fields("bench log --rate 1000,50000000 --peer multi-paxos --inflight 2000 --duration 300ms --warmup " +
		"100ms --max-p99 1h --json")
	code := run(append(args, "--data", dir, "--out", out), &stdout, &stderr)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var c bench.LogCurves
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	if len(c.Series) != 2 || c.Series[0].Protocol != "raft" || c.Series[1].Protocol != "multi-paxos" {
		t.Fatalf("series %s", stdout.String())
	}
	for _, s := range c.Series {
		if len(s.Points) != 2 || s.Points[0].RatePS != 1000 || !s.Points[1].Saturated || !s.Points[1].Verified ||
			s.Points[1].LatencyMS.P99 <= 0 {
			t.Errorf("curve %s", stdout.String())
		}
	}
	for _, name := range []string{"curve.svg", "curve-2.svg", "curve.csv", "curve.json"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	stdout.Reset()
	code = run(strings.Fields("bench log --curve --rate 4000000 --inflight 500 --duration 200ms --warmup 50ms --nodes 1 "+
		"--data "+dir), &stdout, &stderr)
	if text := stdout.String(); code != exitOK || !strings.Contains(text, "offered/s") ||
		!strings.Contains(text, "saturate") {
		t.Errorf("exit code %d: %s%s", code, text, stderr.String())
	}
}

func TestBenchLogPeers(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := diskDir(t)
	var out, errs bytes.Buffer
	code := run(append(strings.Fields("bench log --peer multi-paxos --rounds 2 --duration 500ms --warmup 50ms "+
		"--proposers 20 --json --data"), dir), &out, &errs)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var c bench.LogContest
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(c.Results) != 2 || c.Rounds != 2 || c.Protocol != "raft" || len(c.Runs) != 2 || len(c.Runs[1]) != 2 ||
		len(c.Ratios) != 1 || c.Ratios[0].Protocol != "multi-paxos" || c.Ratios[0].Throughput <= 0 {
		t.Errorf("contest %s", out.String())
	}
}

// The limit is measured like a peer, and the others have shares of it.
func TestBenchLogLimit(t *testing.T) {
	testsize.Long(t)
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(append(strings.Fields("bench log --peer limit --rounds 1 --duration 500ms --warmup 50ms "+
		"--proposers 20 --json --data"), diskDir(t)), &out, &errs)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var c bench.LogContest
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(c.Results) != 2 || !c.Results[1].Verified || c.Results[1].FsyncsPS <= 0 || len(c.Ratios) != 0 ||
		len(c.Shares) != 1 || c.Shares[0].Protocol != "raft" || c.Shares[0].Throughput <= 0 || c.Shares[0].CPU <= 0 {
		t.Errorf("contest %s", out.String())
	}
}

// A member of the map service takes several addresses, one for each network card, and
// niagara's settings.
func TestMapKVOptions(t *testing.T) {
	var f mapkvFlags
	f.name, f.token, f.bodyBytes = "m2", "t", 1
	f.client, f.peer = "http://127.0.0.1:1", "http://127.0.0.1:2,http://127.0.0.1:3"
	f.cluster = "m1=http://127.0.0.1:4,m2=http://127.0.0.1:2,m2=http://127.0.0.1:3,m1=http://127.0.0.1:5"
	f.shape = bench.Shape{Protocol: "niagara", Values: setting.MustParse("instances=2", "leaders=spread")}
	o, clients, err := f.options()
	if err != nil || clients != "127.0.0.1:1" {
		t.Fatalf("%q, %v", clients, err)
	}
	if o.Protocol != braid.Named("niagara", "instances=2", "leaders=spread") || len(o.Listen) != 2 {
		t.Errorf("%+v", o)
	}
	if len(o.Members) != 2 || len(o.Members[0].PeerURLs) != 2 || len(o.Members[1].PeerURLs) != 2 ||
		o.Members[1].ID != o.Self {
		t.Errorf("members %+v", o.Members)
	}
	f.net = "latency=5"
	if _, _, err := f.options(); err == nil || !strings.Contains(err.Error(), "--net") {
		t.Errorf("error %v", err)
	}
	f.net, f.peer = "", "127.0.0.1:2"
	if _, _, err := f.options(); err == nil || !strings.Contains(err.Error(), "--listen-peer-urls") {
		t.Errorf("error %v", err)
	}
}

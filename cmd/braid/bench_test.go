package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/braidlog/braid/bench"
)

// Bad input must be refused at once, with an error that names what is wrong.
func TestBenchBadInput(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"log --payload 0", exitUsage, "payload of 0 bytes"},
		{"log --payload 7", exitUsage, "at least 8"},
		{"log --protocol rafft", exitUsage, `unknown protocol "rafft"`},
		{"log --peer zookeeper", exitUsage, `unknown protocol "zookeeper"`},
		{"log --nodes 0", exitUsage, "0 members"},
		{"log --proposers 3 --rate 5", exitUsage, "closed loop"},
		{"log --proposers 3 --inflight 5", exitUsage, "either proposers or inflight"},
		{"log --inflight 0", exitUsage, "--inflight 0"},
		{"log --rate -3", exitUsage, "--rate -3"},
		{"log --duration -1s", exitUsage, "duration"},
		{"log --rounds 0", exitUsage, "--rounds 0"},
		{"log --no-pipeline --pipeline-depth 4", exitUsage, "no pipeline"},
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
		{"kv --endpoints 127.0.0.1:1 --peer etcd", exitUsage, "--peer is for servers"},
		{"kv --endpoints 127.0.0.1:1", exitFailed, "127.0.0.1:1 is unreachable"},
		{"kv --endpoints nonsense", exitFailed, "must have a host and a port"},
	} {
		var out, errs bytes.Buffer
		code := run(append([]string{"bench"}, strings.Fields(c.args)...), &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("braid bench %s: exit code %d, output %q, error %q; want exit code %d and %q", c.args, code, out.String(), errs.String(), c.code, c.want)
		}
	}
}

func TestBenchLogJSON(t *testing.T) {
	if fs := bench.Filesystem(os.TempDir()); fs == "tmpfs" || fs == "ramfs" {
		t.Setenv("TMPDIR", ".") // the benchmark refuses directories in memory
	}
	var out, errs bytes.Buffer
	code := run(strings.Fields("bench log --duration 300ms --warmup 100ms --inflight 1000 --json"), &out, &errs)
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

func TestBenchLogPeers(t *testing.T) {
	dir := t.TempDir()
	if fs := bench.Filesystem(dir); fs == "tmpfs" || fs == "ramfs" {
		dir = "."
	}
	var out, errs bytes.Buffer
	code := run(append(strings.Fields("bench log --peer etcd-raft --rounds 2 --duration 200ms --warmup 50ms --proposers 20 --json --data"), dir), &out, &errs)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var c bench.LogContest
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(c.Results) != 2 || c.Rounds != 2 || c.Protocol != "raft" || len(c.Runs) != 2 || len(c.Runs[1]) != 2 || len(c.Ratios) != 1 || c.Ratios[0].Protocol != "etcd-raft" || c.Ratios[0].Throughput <= 0 {
		t.Errorf("contest %s", out.String())
	}
}

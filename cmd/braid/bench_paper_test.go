package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braidlog/braid/bench/paper"
)

func TestBenchPaperBadInput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report")
	for _, c := range []struct {
		args string
		want string
	}{
		{"raft-pipelin --out " + out, `unknown experiment "raft-pipelin": there are raft-batching, raft-pipeline`},
		{"raft-batching nonsense --out " + out, `"nonsense"`},
		{"--out " + out, "which experiment?"},
		{"raft-batching", "--out"},
		{"raft-batching --rounds 0 --out " + out, "--rounds 0"},
		{"all --quik --out " + out, "did you mean --quick?"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"bench", "paper"}, strings.Fields(c.args)...), &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("braid bench paper %s: exit code %d, output %q, error %q; want %q", c.args, code, stdout.String(),
				stderr.String(), c.want)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("wrong use made a directory")
	}
}

func TestBenchPaperList(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"bench", "paper", "list"}, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	for _, e := range paper.Experiments() {
		if !strings.Contains(stdout.String(), e.Name) {
			t.Errorf("the list lacks %s", e.Name)
		}
	}
}

// The output of the command with --json equals report.json.
func TestBenchPaperPrint(t *testing.T) {
	f := benchPaperFlags{out: "report", json: true, quick: true, rounds: 2}
	if got, want := f.command([]string{"all"}), "braid bench paper all --out report --quick --rounds 2"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	var stdout bytes.Buffer
	cmd := newBenchPaperCommand()
	cmd.SetOut(&stdout)
	r := &paper.Result{Experiment: "x", Claims: []paper.Judged{}}
	if err := f.print(cmd, []*paper.Result{r}); err != nil {
		t.Fatal(err)
	}
	var got paper.Result
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || got.Experiment != "x" {
		t.Errorf("%v: %s", err, stdout.String())
	}
	r.Machine.Notes = []string{"a note", "VIOLATION: members differ"}
	if err := judge([]*paper.Result{r}); err == nil || !strings.Contains(err.Error(), "members differ") {
		t.Errorf("members that differ: error %v", err)
	}
}

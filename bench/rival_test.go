package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/testsize"
)

// rivalEnv makes the test's own executable the program of rivals, and selects its behaviour.
const rivalEnv = "BRAID_BENCH_RIVAL"

func TestMain(m *testing.M) {
	switch does := os.Getenv(rivalEnv); does {
	case "":
		os.Exit(m.Run())
	case "run":
		err := ServeRival(context.Background(), os.Stdin, os.Stdout, map[string]Opener{"etcd-raft": (&fakeCluster{}).open})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case parentProcess:
		runParent()
	default:
		fmt.Println(does)
		fmt.Fprintln(os.Stderr, "a complaint")
		os.Exit(1)
	}
}

// rivalConfig is a run on a rival in a process of the test's executable.
func rivalConfig(t *testing.T, does string) LogConfig {
	t.Setenv(rivalEnv, does)
	c := fakeConfig(t, Load{Inflight: 100})
	c.Protocol, c.Rivals = "etcd-raft", os.Args[0]
	return c
}

// A run in the process of a rival has the same result as one here.
func TestRivalRunsInItsProcess(t *testing.T) {
	testsize.Long(t)
	c := rivalConfig(t, "run")
	var phases []string
	c.Progress = func(p Progress) { phases = append(phases, p.Phase) }
	r, err := RunLog(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verified || r.Commands == 0 || r.CPUMicrosOp <= 0 || r.Protocol != "etcd-raft" || r.LatencyMS.P50 <= 0 ||
		r.DataDir != filepath.Clean(c.Dir) {
		t.Errorf("result %+v", r)
	}
	if r.Machine.GCPercent != gcPercent() {
		t.Errorf("garbage collections at %d %%, here at %d %%", r.Machine.GCPercent, gcPercent())
	}
	if len(phases) < 2 || phases[0] != "starting" {
		t.Errorf("phases %q", phases)
	}
	if left, _ := os.ReadDir(c.Dir); len(left) > 0 {
		t.Errorf("the run left %v behind", left)
	}
}

// An interrupt ends the run of a rival like one here: the figures until then count.
func TestRivalIsInterrupted(t *testing.T) {
	testsize.Long(t)
	c := rivalConfig(t, "run")
	c.Load.Duration = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Progress = func(p Progress) {
		if p.Phase == "measuring" {
			cancel()
		}
	}
	r, err := RunLog(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || !r.Verified || r.DurationS > 30 {
		t.Errorf("result %+v", r)
	}
}

func TestRivalThatFails(t *testing.T) {
	for does, want := range map[string][]string{
		"nothing":          {"etcd-raft: ", "ended without a result", "a complaint"},
		`{"error": "bad"}`: {"bad"},
		`{"more": 1}`:      {"unknown field", "a complaint"},
	} {
		_, err := RunLog(t.Context(), rivalConfig(t, does))
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %v, want %q", does, err, w)
			}
		}
	}
	c := rivalConfig(t, "run")
	c.Protocol = "hashicorp-raft"
	if _, err := RunLog(t.Context(), c); err == nil || !strings.Contains(err.Error(), `has no "hashicorp-raft"`) {
		t.Errorf("error %v", err)
	}
	c.Rivals = ""
	if _, err := RunLog(t.Context(), c); err == nil {
		t.Error("a rival ran without a program")
	}
}

// TestFindRivals: a run without rivals needs no program. A run with rivals fails with the command that builds it.
func TestFindRivals(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if path, err := FindRivals("", []string{"raft", "lcr", "raft-map"}); path != "" || err != nil {
		t.Errorf("without rivals: %q, %v", path, err)
	}
	for _, name := range []string{"hashicorp-raft", "etcd"} {
		_, err := FindRivals("", []string{"raft", name})
		var missing *RivalsMissingError
		here := filepath.Join(filepath.Dir(os.Args[0]), RivalsProgram)
		if !errors.As(err, &missing) || missing.Contestant != name || missing.Build != "go -C bench/rivals build -o "+here+
			" ." {
			t.Errorf("%s: error %v", name, err)
		}
	}
	given := filepath.Join(t.TempDir(), "program")
	if _, err := FindRivals(given, []string{"etcd"}); err == nil || !strings.Contains(err.Error(), "build -o "+given) {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(given, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if path, err := FindRivals(given, []string{"etcd"}); path != given || err != nil {
		t.Errorf("%q, %v", path, err)
	}
}

// Command benchdiff runs a few benchmarks of the hot paths on what is checked out and on the commit before, in turns,
// and prints the medians of both. Times are for the reader: they never make it fail. What hot paths allocate is held
// by tests (testsize.Allocations).
//
//	go run ./internal/benchdiff                     # against the merge base with the upstream branch, or HEAD^
//	go run ./internal/benchdiff -base v0.1.0        # against another commit
//	go run ./internal/benchdiff -rounds 9 -within 10m
//
// How to read: main.go (which benchmarks), trees.go (the two trees and their programs), rounds.go (runs, and what they
// print), table.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

// suite is the benchmarks of a package that are run, by patterns as of go test -bench.
type suite struct {
	folder   string // from the module's root
	patterns []string
}

// suites are those of a command's way: proposed, replicated, written, sent, ordered, applied, and all of it.
var suites = []suite{
	{"internal/protocol/raft", []string{"^Benchmark(FollowerAppend|Reads)$", "^BenchmarkLeaderAppend$/^(one|256)$"}},
	{"internal/wal", []string{"^BenchmarkAppend$"}},
	{"internal/transport", []string{"^BenchmarkRoundTrip$", "^BenchmarkFrames$/^size=200$/^tls=false$"}},
	{"internal/order", []string{"^BenchmarkNiagaraNext$/^R=4$"}},
	{"internal/store", []string{"^BenchmarkApplyPut$/^batch=100$/^limit=10000$"}},
	{".", []string{"^BenchmarkPropose$/^fit=off$"}},
}

func main() {
	base := flag.String("base", "",
		"the commit to compare with; empty: the merge base with the upstream branch, or HEAD^")
	rounds := flag.Int("rounds", 3, "how often each benchmark runs on each of the two")
	within := flag.Duration("within", 45*time.Second,
		"begin no round that would end later, except the first; the programs are built before")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *base, *rounds, *within); err != nil {
		fmt.Fprintln(os.Stderr, "benchdiff:", err)
		os.Exit(1)
	}
}

// run prints how benchmarks of the module in the current directory compare with those of a commit.
func run(ctx context.Context, out io.Writer, base string, rounds int, within time.Duration) error {
	root, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	base, err = before(ctx, root, base)
	if errors.Is(err, errNoCommitBefore) {
		fmt.Fprintln(out, err)
		return nil
	}
	if err != nil {
		return err
	}
	t, err := open(ctx, root, base, suites)
	if err != nil {
		return err
	}
	defer t.close()
	for _, f := range t.missing {
		fmt.Fprintf(out, "%s: not built at %.12s\n", f, base)
	}
	made, got, err := measure(ctx, t, rounds, time.Now().Add(within))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "before: %.12s; medians of %d rounds each\n\n", base, made)
	return write(out, got)
}

// output runs a command and returns what it prints, without the last line's end.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(text)), err
}

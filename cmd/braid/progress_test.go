package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/paper"
)

// TestProgressInLines: without a terminal there is a line for each part, and one every ten seconds.
func TestProgressInLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	at := bench.Progress{Protocol: "raft", Phase: "measuring", Whole: 25 * time.Second, PerSecond: 1234}
	began := time.Now()
	p := &progress{out: &out, lines: true, now: func() time.Time { return began.Add(at.Elapsed) }}
	for range 25 {
		at.Elapsed += time.Second
		p.show(at)
	}
	p.show(bench.Progress{Protocol: "raft", Phase: "verifying"})
	p.clear()
	p.experiment(paper.Progress{Experiment: "craft-read", Doing: "starting", Whole: 8})
	require.Equal(t, []string{
		"raft             measuring  1 s of 25 s, 1234/s",
		"raft             measuring  11 s of 25 s, 1234/s",
		"raft             measuring  21 s of 25 s, 1234/s",
		"raft             verifying  0 s",
		"craft-read            0 of 8 runs, starting",
		"",
	}, strings.Split(out.String(), "\n"))
}

// TestProgressAsABar is drawn over itself, and removed at the end.
func TestProgressAsABar(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{out: &out, bar: true, now: time.Now}
	p.put("part", 0.5, "text")
	p.put("part", -1, "text")
	p.clear()
	require.Equal(t, "\r\x1b[Kpart ████████████░░░░░░░░░░░░ text\r\x1b[Kpart text\r\x1b[K", out.String())
	out.Reset()
	silent := &progress{out: &out, now: time.Now}
	silent.put("part", 0, "text")
	silent.clear()
	require.Empty(t, out.String(), "output for programs")
}

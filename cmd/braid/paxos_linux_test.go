package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// Multi-Paxos with real processes. Longer tests are in toy_linux_test.go.

const multiPaxos = "--protocol=multi-paxos"

func TestMultiPaxosSurvivesKills(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	survivesKills(t, multiPaxos)
}

// survivesKills kills each member in turn, the leader first, and then all of them. No acknowledged write is lost.
func survivesKills(t *testing.T, protocol string) {
	dir := dataDir(t)
	c := up(t, dir, protocol, "--restart")
	w := write(t, c)
	for _, name := range []string{c.leader(), "m1", "m2", "m3"} {
		before := w.total()
		kill(t, c.pids[name])
		require.Equal(t, name, c.next(launch.Serving).Member)
		eventually(t, "writes after a crash", func(context.Context) bool { return w.total() > before+200 })
	}
	w.end()
	kill(t, c.cmd.Process.Pid) // the members end with it
	<-c.ended
	again := up(t, dir)
	for _, endpoint := range again.endpoints {
		w.check(t, again.client(endpoint))
	}
}

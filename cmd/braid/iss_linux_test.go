package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/launch"
)

const iss = "--protocol=iss"

// Each of five members is killed in turn and started again, below clients of all of them that put, read, transact and
// transfer. Then all are killed at once.
func TestISSUnderKills(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), iss, "--nodes=5", "--restart")
	judge := c.checkedLoad()
	w, a := write(t, c), c.transfer()
	goesOn := func() {
		before := w.total()
		eventually(t, "writes", func(context.Context) bool { return w.total() > before+100 })
		a.more(20)
	}
	goesOn()
	for _, name := range []string{c.leader(), "m1", "m2", "m3", "m4", "m5"} {
		kill(t, c.pids[name])
		require.Equal(t, name, c.next(launch.Serving).Member)
		goesOn()
	}
	for _, pid := range c.pids {
		kill(t, pid)
	}
	for range c.pids {
		c.next(launch.Serving)
	}
	goesOn()
	judge()
	w.end()
	a.end()
	for _, endpoint := range c.endpoints {
		w.check(t, c.client(endpoint))
	}
	a.check(c.client())
}

package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJoinBehindASeal: a member joins a cluster that changed its protocol.
func TestJoinBehindASeal(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t))
	ok(t, "switch", "multi-paxos", "--endpoints", c.endpoints[0])
	ok(t, "switch", "raft", "--endpoints", c.endpoints[0])
	ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "a", "b")
	f := newServeFlags(t)
	f.name = "m4"
	ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "add", "m4", "--peer-urls", "http://"+f.peer)
	_, _ = begin(t, "", f.args("--initial-cluster-state=existing", "--join", "http://"+c.endpoints[0])...)
	eventually(t, "m4 is healthy", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	require.Equal(t, "a\nb", ok(t, "ctl", "--endpoints", f.client, "get", "a"))
}

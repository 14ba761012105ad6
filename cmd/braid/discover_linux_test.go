package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDiscoveryThroughAnotherCluster: members register in a cluster that runs, and found their own once there are as
// many as is written there. They restart without it, and a further one is told that the cluster is full.
func TestDiscoveryThroughAnotherCluster(t *testing.T) {
	t.Parallel()
	registry := newServeFlags(t)
	running := serving(t, registry)
	ok(t, "ctl", "--endpoints", registry.client, "put", "/_etcd/registry/shop/_config/size", "2")
	discovery := []string{"--discovery-endpoints=http://" + registry.client, "--discovery-token=shop"}
	members := memberFlags(t, 2)
	waits, _ := begin(t, "", members[0].args(discovery...)...)
	other := serving(t, members[1], discovery...)
	list := ok(t, "ctl", "--endpoints", members[1].client, "member", "list")
	require.Contains(t, list, "m1")
	require.Contains(t, list, "m2")

	third := newServeFlags(t)
	third.name = "m3"
	_, stderr, code := do(t, "", third.args(discovery...)...)
	require.NotZero(t, code)
	require.Contains(t, stderr, "discover the members: discovery: cluster is full")

	running.stop()
	waits.stop()
	other.stop()
	begin(t, "", members[0].args(discovery...)...)
	begin(t, "", members[1].args(discovery...)...)
	eventually(t, "health", func(ctx context.Context) bool {
		return healthy(ctx, members[0].client) && healthy(ctx, members[1].client)
	})
	require.Len(t, strings.Split(ok(t, "ctl", "--endpoints", members[0].client, "member", "list"), "\n"), 2)
}

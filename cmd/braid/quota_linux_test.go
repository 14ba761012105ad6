package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A quota is set, shown, holds, and is removed.
func TestQuotaCommand(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=1")
	quota := func(args ...string) string {
		return ok(t, append([]string{"quota", "--endpoints", c.endpoints[0]}, args...)...)
	}
	require.Equal(t, "there are no quotas of prefixes", quota())
	require.Equal(t, "PREFIX  BYTES      KEYS\n\"a/\"    0 of 1000  0 of 1",
		quota("a/", "--bytes=1000", "--keys=1"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := c.client()
	_, err := client.Put(ctx, "a/1", "v")
	require.NoError(t, err)
	_, err = client.Put(ctx, "a/2", "v")
	require.ErrorContains(t, err, `quota of prefix "a/" exceeded`)
	require.Contains(t, quota(), "4 of 1000  1 of 1")
	require.Equal(t, "there are no quotas of prefixes", quota("a/", "--remove"))
	_, err = client.Put(ctx, "a/2", "v")
	require.NoError(t, err)
}

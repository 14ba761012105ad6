package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/ports"
)

// TestOtherSettingsAreRefused: leases are only safe if all members have them, and wait as
// long as each other. A member that was started otherwise is alone, and both sides say why.
func TestOtherSettingsAreRefused(t *testing.T) {
	t.Parallel()
	free, err := ports.Free("127.0.0.1", 6)
	require.NoError(t, err)
	var initial []string
	flags := make([]serveFlags, 3)
	for i := range flags {
		f := &flags[i]
		f.name, f.dir = fmt.Sprintf("m%d", i+1), dataDir(t)
		f.client, f.peer = fmt.Sprintf("127.0.0.1:%d", free[2*i]), fmt.Sprintf("127.0.0.1:%d", free[2*i+1])
		initial = append(initial, f.name+"=http://"+f.peer)
	}
	start := func(f serveFlags, more ...string) *invocation {
		more = append(more, "--initial-cluster="+strings.Join(initial, ","), "--initial-advertise-peer-urls=http://"+f.peer)
		c, _ := begin(t, "", f.args(more...)...)
		return c
	}
	first, _, odd := start(flags[0], "--lease-reads"), start(flags[1], "--lease-reads"), start(flags[2], "--election-timeout=1500")

	says := func(c *invocation, words string) {
		t.Helper()
		eventually(t, words, func(context.Context) bool {
			return strings.Contains(strings.ReplaceAll(c.stderr.String(), `\"`, `"`), words)
		})
	}
	says(first, `lease-reads is "false" there, "true" here`)
	says(first, `election-timeout is "1.5s" there, "1s" here`)
	says(odd, `lease-reads is "true" there, "false" here`)
	says(odd, `election-timeout is "1s" there, "1.5s" here`)
	eventually(t, "the two that agree are a cluster", func(ctx context.Context) bool { return healthy(ctx, flags[0].client) })
	ok(t, "ctl", "--endpoints", flags[1].client, "put", "a", "b")
	_, stderr, code := do(t, "", "ctl", "--endpoints", flags[2].client, "--command-timeout=1s", "get", "a")
	require.NotZero(t, code, "the odd one serves: %s", stderr)
}

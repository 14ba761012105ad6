package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// TestReplace: the disk of a member is lost. One command replaces the member at the same address, and what the command
// prints starts the new one, which counts in majorities soon.
func TestReplace(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"raft", "craft", "lcr", "niagara", "multi-paxos", "iss"} {
		t.Run(protocol, func(t *testing.T) {
			if protocol != "raft" {
				testsize.Only(t, testsize.Processes)
			}
			t.Parallel()
			replaces(t, protocol)
		})
	}
}

func replaces(t *testing.T, protocol string) {
	c := unstarted(t)
	c.more = []string{"--protocol", protocol}
	c.start(1, 2, 3)
	c.healthy(1)
	ok(t, "ctl", "--endpoints", c.flags[1].client, "put", "a", "x")
	_, stderr, code := do(t, "", "replace", "m3", "--endpoints", c.flags[1].client)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "member m3 answers: stop it before it is replaced")

	c.kill(3)
	c.wipe(3)
	var out string
	eventually(t, "the link is lost", func(context.Context) bool {
		out, stderr, code = do(t, "", "replace", "m3", "--endpoints", c.flags[1].client)
		return code == 0
	})
	env := printed(out)
	require.Len(t, env, 4, out)
	_, stderr, code = do(t, "", "replace", "m9", "--endpoints", c.flags[1].client)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, `there is no member "m9"; added and not started: `)

	c.running[3], _ = beginWith(t, env, "", "serve", "--data-dir", c.flags[3].dir, "--listen-client-urls",
		"http://"+c.flags[3].client, "--advertise-client-urls", "http://"+c.flags[3].client, "--listen-peer-urls",
		"http://"+c.flags[3].peer)
	eventually(t, "the new member votes", func(ctx context.Context) bool {
		return votersAt(ctx, t, c.flags[3].client, 3)
	})
	c.kill(2) // the former member 3 would be missed now
	c.healthy(3)
	require.Equal(t, "a\nx", ok(t, "ctl", "--endpoints", c.flags[3].client, "get", "a"))
	ok(t, "ctl", "--endpoints", c.flags[3].client, "put", "b", "y")
}

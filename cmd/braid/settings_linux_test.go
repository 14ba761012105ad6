package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/ports"
)

// TestOtherSettingsAreRefused: leases are only safe if all members have them, with the same timeouts. With other
// settings of epochs the same log has other epochs. A member with other settings stays alone, and both sides log why.
func TestOtherSettingsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		flags, odd      []string
		says, oddlySays []string
	}{
		"leases": {
			[]string{"--lease-reads"}, []string{"--election-timeout=1500"},
			[]string{`lease-reads is "false" there, "true" here`, `election-timeout is "1.5s" there, "1s" here`},
			[]string{`lease-reads is "true" there, "false" here`, `election-timeout is "1s" there, "1.5s" here`},
		},
		"epochs": {
			[]string{"--protocol=iss"}, []string{"--protocol=iss", "--epoch-slots=64"},
			[]string{`epochs is "slots 64-64, `}, []string{`epochs is "slots 64-1024, `},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusesTheOdd(t, c.flags, c.odd, c.says, c.oddlySays)
		})
	}
}

// refusesTheOdd starts three members, one of them with other flags, which is refused.
func refusesTheOdd(t *testing.T, usual, other, says, oddlySays []string) {
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
	first, _, odd := start(flags[0], usual...), start(flags[1], usual...), start(flags[2], other...)
	hears := func(c *invocation, all []string) {
		t.Helper()
		for _, words := range all {
			eventually(t, words, func(context.Context) bool {
				return strings.Contains(strings.ReplaceAll(c.stderr.String(), `\"`, `"`), words)
			})
		}
	}
	hears(first, says)
	hears(odd, oddlySays)
	eventually(t, "the two that agree are a cluster", func(ctx context.Context) bool {
		return healthy(ctx, flags[0].client)
	})
	ok(t, "ctl", "--endpoints", flags[1].client, "put", "a", "b")
	_, stderr, code := do(t, "", "ctl", "--endpoints", flags[2].client, "--command-timeout=1s", "get", "a")
	require.NotZero(t, code, "the odd one serves: %s", stderr)
}

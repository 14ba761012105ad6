//go:build toy

package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The protocol of docs/internals/writing-a-protocol.md, with real processes: go test -tags toy -run Toy ./cmd/braid

const toy = "--protocol=slotpaxos"

// slots are the protocols that decide slots.
var slots = []string{toy, multiPaxos, iss}

// Clients cannot distinguish them from Raft.
func TestToyAnswersAsRaftDoes(t *testing.T) {
	for _, protocol := range slots {
		t.Run(protocol, func(t *testing.T) { answersAsRaft(t, protocol) })
	}
}

func answersAsRaft(t *testing.T, protocol string) {
	t.Parallel()
	steps := writeHistory(20261122, 250)
	raft := upWith(t, calm, dataDir(t))
	onRaft := raft.play(steps)
	raft.stop()
	c := upWith(t, calm, dataDir(t), protocol)
	played := c.play(steps)
	onRaft.equal(t, &played)
}

func TestToyWithCtl(t *testing.T) {
	t.Parallel()
	c := up(t, dataDir(t), toy)
	for i, endpoint := range c.endpoints {
		ctl := func(args ...string) string {
			return ok(t, append([]string{"ctl", "--endpoints", endpoint}, args...)...)
		}
		require.Equal(t, "OK", ctl("put", "key", string(rune('a'+i))))
		require.Equal(t, "key\n"+string(rune('a'+i)), ctl("get", "key"))
	}
}

func TestToySurvivesKills(t *testing.T) {
	t.Parallel()
	survivesKills(t, toy)
}

// A member joins as a learner, becomes a voter, and another one leaves.
func TestToyMembership(t *testing.T) {
	for _, protocol := range slots {
		t.Run(protocol, func(t *testing.T) { membership(t, protocol) })
	}
}

func membership(t *testing.T, protocol string) {
	t.Parallel()
	c := up(t, dataDir(t), protocol)
	w := write(t, c)
	f := newServeFlags(t)
	f.name, f.dir = "m4", filepath.Join(c.dir, "m4")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "--command-timeout=20s", "member", "add", "m4", "--learner", "--peer-urls",
		"http://"+f.peer)
	begin(t, "", f.args("--initial-cluster-state=existing", "--join", "http://"+c.endpoints[0], protocol)...)
	id := func(name string) (id uint64) {
		if list, err := c.client().MemberList(t.Context()); err == nil {
			for _, m := range list.Members {
				if m.Name == name {
					id = m.ID
				}
			}
		}
		return id
	}
	eventually(t, "the learner's name", func(context.Context) bool { return id("m4") != 0 })
	eventually(t, "promotion", func(ctx context.Context) bool {
		_, err := c.client().MemberPromote(ctx, id("m4"))
		return err == nil
	})
	eventually(t, "the voter's health", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	eventually(t, "the removal of m1", func(ctx context.Context) bool {
		_, err := c.client(c.alive()["m2"]).MemberRemove(ctx, id("m1"))
		return err == nil || id("m1") == 0
	})
	kill(t, c.pids["m1"])
	rest := c.alive("m1")
	c.endpoints = []string{rest["m2"], rest["m3"], f.client}
	before := w.total()
	eventually(t, "writes without m1", func(context.Context) bool { return w.total() > before+100 })
	w.end()
	for _, endpoint := range c.endpoints {
		w.check(t, c.client(endpoint))
	}
}

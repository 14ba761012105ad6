package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
)

// leads returns the instances that a member leads.
func (d *day) leads(i int) []string {
	d.t.Helper()
	all := status.Ask(d.t.Context(), status.Options{Endpoints: []string{d.flags[i].client}, Only: true,
		Timeout: 5 * time.Second})
	leads, known := ledBy(all, d.flags[i].name)
	require.True(d.t, known, "%v", all)
	return leads
}

// someLeader returns a member that leads something.
func (d *day) someLeader() (leader int) {
	d.t.Helper()
	eventually(d.t, "a leader", func(context.Context) bool {
		for i := range d.flags {
			if leader = i; len(d.leads(i)) > 0 {
				return true
			}
		}
		return false
	})
	return leader
}

// TestDrain: a member that is drained leads nothing until that is undone or it restarts, also if it is the preferred
// leader. No request is repeated.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"raft": nil, "iss": {iss}, "spread": {"--protocol=niagara", "--instances=3", "--leaders=spread"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "raft" {
				testsize.Only(t, testsize.Processes)
			}
			t.Parallel()
			d := newDay(t, 3, 3, flags...)
			i := d.someLeader()
			m, other := d.flags[i].name, (i+1)%3
			drain := func(more ...string) string {
				return ok(t, append([]string{"drain", m, "--endpoints", d.flags[other].client}, more...)...)
			}
			_, stderr, code := do(t, "", "drain", "m9", "--endpoints", d.flags[other].client)
			require.Equal(t, exitFailed, code)
			require.Contains(t, stderr, `there is no member "m9"`)
			d.step("drain", false, func() { require.Contains(t, drain(), m+" leads nothing") })
			d.step("it stays drained", false, func() {
				require.Contains(t, ok(t, "status", "--only", "--endpoints", d.flags[i].client), "yes, drained")
				for end := time.Now().Add(4 * electionTimeout); time.Now().Before(end); {
					require.Empty(t, d.leads(i))
				}
			})
			back := func() { // raft prefers no leader, and ISS bans a member that gave up a segment for a while
				eventually(t, m+" leads again", func(context.Context) bool {
					return name != "spread" || len(d.leads(i)) > 0
				})
			}
			d.step("undo", false, func() { drain("--undo"); back() })
			require.NotContains(t, ok(t, "status", "--only", "--endpoints", d.flags[i].client), "drained")
			d.step("drain again", false, func() { drain() })
			d.step("restart", false, func() { d.restart(i, os.Args[0]); back() })
			d.ends()
		})
	}
}

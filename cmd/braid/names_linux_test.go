package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
)

// TestMembersWithOtherProtocolNames: a cluster that began as raft, or as niagara, is tuned. A member restarts with the
// flags of another protocol of the same core, and a member joins with those of a third one. Each serves, and all say
// that the cluster is what it was tuned to. Another core is refused by name.
func TestMembersWithOtherProtocolNames(t *testing.T) {
	for _, k := range []struct {
		began []string
		tune  []string // NAME=VALUE…
		shows string
	}{
		{nil, []string{"lanes=true"}, "lcr"},
		{[]string{"--protocol=niagara", "--instances=4"}, []string{"placement=code"}, "niagara"},
	} {
		t.Run(k.shows, func(t *testing.T) {
			t.Parallel()
			c := unstarted(t)
			c.more = k.began
			c.start(1, 2, 3)
			for i := 1; i <= 3; i++ {
				c.healthy(i)
			}
			running := &cluster{invocation: c.running[1], endpoints: []string{c.flags[1].client}}
			running.tune(k.tune[0])
			members := []serveFlags{c.flags[1], c.flags[2], c.flags[3]}
			serves := func(why string) {
				for i, f := range members {
					key := fmt.Sprintf("as%s-%d", why, i)
					ok(t, "ctl", "--endpoints", f.client, "put", key, "v")
					require.Contains(t, ok(t, "ctl", "--endpoints", c.flags[1].client, "get", key), "v")
					eventually(t, why, func(ctx context.Context) bool {
						all := status.Ask(ctx, status.Options{
							Endpoints: []string{f.client}, Only: true, Timeout: time.Second,
						})
						return len(all) == 1 && all[0].Protocol == k.shows
					})
				}
			}
			for _, flags := range [][]string{
				{"--protocol=niagara", "--instances=4", "--leaders=spread"},
				{"--protocol=lcr", "--placement=code", "--code-k=2"},
				{"--protocol=raft"},
			} {
				c.kill(3)
				c.more = flags
				c.start(3)
				c.healthy(3)
				serves(flags[0])
			}
			c.kill(3)
			c.more = []string{"--protocol=iss"}
			c.start(3)
			<-c.running[3].ended
			require.Contains(t, c.running[3].stderr.String(), "not of iss")
			c.more = nil
			c.start(3)
			c.healthy(3)

			joiner := newServeFlags(t)
			joiner.name = "m4"
			ok(t, "ctl", "--endpoints", c.flags[1].client, "member", "add", "m4", "--peer-urls", "http://"+joiner.peer)
			join := []string{"--initial-cluster-state=existing", "--join=http://" + c.flags[1].client}
			refused, _ := begin(t, "", joiner.args(append(join, "--protocol=iss")...)...)
			<-refused.ended
			require.Contains(t, refused.stderr.String(), "is to join has a log of raft")
			serving(t, joiner, append(join, "--protocol=craft")...)
			members = append(members, joiner)
			serves("joined")
		})
	}
}

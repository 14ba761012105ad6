package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// seal is a seal before a number of instances of the same core, under the settings that are active.
func (c *testCluster) seal(id protocol.MemberID, instances int) protocol.Seal {
	active := c.running[id].Profile()
	return protocol.Seal{Profile: protocol.Profile{Version: active.Version + 1, Core: "raft", Values: active.Values},
		Instances: instances, Merged: instances > 1}
}

// TestALogIsSealed: it continues in 1, 3 and 1 instances of the same core, under load, and after restarts.
func TestALogIsSealed(t *testing.T) {
	inBubble(t, setting{size: 3, tune: grows(true), durable: true}, func(c *testCluster) {
		for i, instances := range []int{1, 3, 1} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.fill(protocol.MemberID(3-i), fmt.Sprint("during ", i), 30)
			}()
			at := protocol.MemberID(i + 1)
			c.until("the profile is known", func() bool { return c.running[at].Profile().Version == uint64(i+1) })
			require.NoError(c.t, c.running[at].Switch(c.t.Context(), c.seal(at, instances)))
			<-done
			c.until("all have begun", func() bool {
				for _, r := range c.running {
					if s := r.Status(); len(s.Instances) != instances || s.Config.Profile.Version != uint64(i+2) {
						return false
					}
				}
				return true
			})
			c.fill(c.leader(), fmt.Sprint("after ", i), 10)
			c.restart()
		}
		leader := c.leader()
		c.fill(leader, "again", 1)
		require.Len(c.t, c.running[leader].Status().Instances, 1)
		require.True(c.t, c.machines[leader].has("during 1 0"))
	})
}

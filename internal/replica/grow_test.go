package replica

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	settings "github.com/braidlog/braid/protocol/setting"
)

// grows gives members a log of one instance that others may join, with or without a profile.
func grows(profile bool) func(*Options) {
	return func(o *Options) {
		o.Settings.InLog, o.Settings.Table = profile, common.Settings
		flags := common.ElectionTimeout.Set(settings.Values{}, testElection)
		flags = common.Leaders.Set(flags, protocol.LeadersTogether)
		o.Settings.Flags, o.Leaders = common.Heartbeat.Set(flags, testHeartbeat), protocol.LeadersTogether
	}
}

// TestALogOfOneInstanceGrows: it has 4 instances, 1 and 3, under load, and the same after a restart. From the first
// change on, an earlier version does not open the directories.
func TestALogOfOneInstanceGrows(t *testing.T) {
	inBubble(t, setting{size: 3, tune: grows(true), durable: true}, func(c *testCluster) {
		for i, instances := range []int{4, 1, 3} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.fill(protocol.MemberID(3-i), fmt.Sprint("during ", instances), 30)
			}()
			require.NoError(c.t, c.running[protocol.MemberID(i+1)].Reshape(c.t.Context(), instances))
			<-done
			c.until("all have as many instances", func() bool {
				for _, r := range c.running {
					if len(r.Status().Instances) != instances {
						return false
					}
				}
				return true
			})
			c.fill(c.leader(), fmt.Sprint("after ", instances), 10)
			for id := range c.members {
				require.Equal(c.t, 7, c.format(protocol.MemberID(id+1)))
				require.EqualValues(c.t, 1, c.running[protocol.MemberID(id+1)].who.told().Profile, "earlier versions have none")
			}
		}
		c.restart()
		leader := c.leader()
		c.fill(leader, "again", 1)
		require.Len(c.t, c.running[leader].Status().Instances, 3)
		require.True(c.t, c.machines[leader].has("during 4 0"))
	})
}

// TestALogWithoutAProfileKeepsOneInstance: members of an earlier version would ignore the change.
func TestALogWithoutAProfileKeepsOneInstance(t *testing.T) {
	inBubble(t, setting{size: 1, tune: grows(false)}, func(c *testCluster) {
		var refused *member.RefusedError
		require.ErrorAs(c.t, c.running[c.leader()].Reshape(c.t.Context(), 2), &refused)
		require.Equal(c.t, protocol.ReasonNoProfile, refused.Reason)
		require.Equal(c.t, 2, c.format(1))
	})
}

// format is the format of a member's directory.
func (c *testCluster) format(id protocol.MemberID) int {
	c.t.Helper()
	f, err := wal.ReadFile(c.disks[id], "d/member.json", 1<<16)
	require.NoError(c.t, err)
	var has struct{ Format int }
	require.NoError(c.t, json.Unmarshal(f, &has))
	return has.Format
}

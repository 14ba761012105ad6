package replica

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/protocol"
)

// TestAStateThatIsAheadOfItsLogIsRefused starts a single member whose state machine has commands that its log does
// not have. Without the check, proposals are reported as applied that were not.
func TestAStateThatIsAheadOfItsLogIsRefused(t *testing.T) {
	inBubble(t, setting{size: 1, durable: true}, func(c *testCluster) {
		c.leader()
		c.fill(1, "before", 10)
		c.close(1)
		c.machines[1].at += 60
		_, err := Open(c.options(1), durable{&machine{at: c.machines[1].at}})
		var refused *member.DirError
		require.ErrorAs(c.t, err, &refused)
		require.ErrorContains(c.t, err, "the log ends at position 11, but the state machine is at 71")
		c.machines[1].at -= 60
		c.start(1)
		c.leader()
		require.NoError(c.t, c.running[1].ReadBarrier(c.t.Context()))
	})
}

// TestAStateOfAnotherLogStopsItsMember starts members whose state machines have commands that no log has. Other
// members might have them, so the fault shows when the log continues: no read is answered, and no command is reported
// as applied.
func TestAStateOfAnotherLogStopsItsMember(t *testing.T) {
	for name, ahead := range map[string][]protocol.MemberID{"one member": {2}, "all": {1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setting{size: 3, durable: true}, func(c *testCluster) {
				c.leader()
				c.fill(1, "before", 10)
				for _, m := range c.members {
					c.until("all is applied", func() bool { return c.machines[m.ID].has("before 9") })
				}
				for _, m := range c.members {
					c.close(m.ID)
				}
				for _, id := range ahead {
					c.machines[id].at += 60
				}
				for _, m := range c.members {
					c.start(m.ID)
				}
				_, err := c.running[2].Propose(c.t.Context(), []byte("x"), nil)
				require.Error(c.t, err)
				require.NotErrorIs(c.t, err, member.ErrResultUnknown)
				why := &apply.StateAheadError{}
				// If all are ahead, the first that stop may be a majority. The log of the third does not continue then.
				c.until("a member stops", func() bool { return slices.ContainsFunc(ahead, c.stopped) })
				stopped := ahead[slices.IndexFunc(ahead, c.stopped)]
				require.ErrorAs(c.t, c.running[stopped].Err(), &why)
				require.EqualValues(c.t, 71, why.State)
				synctest.Wait()
				for _, id := range ahead {
					_ = c.running[id].Close()
					c.ended(id)
				}
			})
		})
	}
}

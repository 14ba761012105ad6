package replica

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestTheMemberThatSendsAStateStops: a member agrees to send its state and is cut off before it has begun. The
// member whose state is damaged asks another one soon.
func TestTheMemberThatSendsAStateStops(t *testing.T) {
	inBubble(t, setting{size: 3, durable: true}, func(c *cluster) {
		sick := c.follower()
		r, sm := c.running[sick], durable{c.machines[sick]}
		c.fill(c.leader(), "before", 5)
		c.until("all is applied", func() bool { return sm.has("before 4") })
		others := slices.DeleteFunc([]protocol.MemberID{1, 2, 3}, func(id protocol.MemberID) bool { return id == sick })
		asked, release := make(chan protocol.MemberID, 9), make(chan struct{})
		for _, id := range others {
			c.machines[id].hook(func(m *machine) {
				m.take = func() error {
					asked <- id
					<-release
					return nil
				}
			})
		}
		sm.Condemn(errors.New("a flipped byte"))
		r.CheckState()
		slow := <-asked
		c.net.isolate(uint64(slow), true)
		other := others[0] + others[1] - slow
		began := time.Now()
		require.Equal(c.t, other, <-asked)
		require.Less(c.t, time.Since(began), 5*testElection)
		close(release)
		c.until("the state is replaced", func() bool { return sm.Damaged() == nil })
		c.net.isolate(uint64(slow), false)
		c.fill(other, "after", 1)
		c.until("the member goes on", func() bool { return sm.has("after 0") })
	})
}

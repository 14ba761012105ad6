package replica

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
)

var errMachine = errors.New("the machine's disk is broken")

// TestAMachineThatFailsAnswersAll lets the state machine fail while it applies. More commits wait then, some
// of them already in the hands of the apply loop. Everybody is told once, and nothing is acknowledged after
// the failure.
func TestAMachineThatFailsAnswersAll(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *cluster) {
		t := c.t
		c.leader()
		c.fill(1, "before", 3)
		r, sm, a := c.running[1], c.machines[1], newAnswers()
		reached, release := make(chan struct{}), make(chan struct{})
		sm.hook(func(m *machine) {
			m.apply = func(command string) error {
				switch command {
				case "command 0":
					close(reached)
					<-release
				case "command 1":
					return errMachine
				}
				return nil
			}
		})
		for i := range 20 {
			require.NoError(t, a.propose(r, fmt.Sprintf("command %d", i), nil))
			synctest.Wait() // so that each is a batch of its own
		}
		<-reached
		close(release)
		<-r.Done()
		require.ErrorIs(t, r.Err(), errMachine)
		for name, err := range a.complete(t) {
			if name == "command 0" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, member.ErrStopped)
			}
		}
		c.ended(1)
	})
}

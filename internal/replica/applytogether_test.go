package replica

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
)

// counted is a machine that counts its calls.
type counted struct {
	*machine
	calls []int // the number of commands in each
}

func (m *counted) Apply(commands []member.Command) error {
	m.calls = append(m.calls, len(commands))
	return m.machine.Apply(commands)
}

// TestApplyGetsAllThatWaits commits a hundred entries during a call of the state machine. The next call gets all of
// them. With a call for each entry, a state machine that syncs its disk in each would never catch up.
func TestApplyGetsAllThatWaits(t *testing.T) {
	inBubble(t, setting{size: 1, waits: true}, func(c *testCluster) {
		sm := &counted{machine: &machine{}}
		r, err := Open(c.options(1), sm)
		require.NoError(c.t, err)
		c.running[1], c.machines[1] = r, sm.machine
		c.leader()
		busy, open := c.gate()
		sm.hook(func(m *machine) {
			m.apply = func(string) error {
				<-busy
				return nil
			}
		})
		a := newAnswers()
		const entries = 100
		for i := range 1 + entries {
			require.NoError(c.t, a.propose(r, fmt.Sprint(i), nil))
			synctest.Wait() // it is committed, in a separate entry
		}
		before := len(sm.calls)
		open()
		c.until("all are told", a.all)
		a.complete(c.t)
		require.Equal(c.t, []int{entries}, sm.calls[before:])
	})
}

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testsize"
)

// TestProcessesMove: members are started at other addresses than those in the log. All move at once, then one moves
// without the others' knowledge, then another one moves to its old address. Each time every member reads and writes,
// and reads earlier writes.
func TestProcessesMove(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"raft", "iss", "niagara", "lcr",
		"multi-paxos"}[:testsize.Pick(testsize.Processes, 0, 1, 5)] {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := unstarted(t)
			c.more = []string{"--protocol=" + protocol}
			c.start(1, 2, 3)
			c.serves("at first")

			for i := 1; i <= 3; i++ {
				c.running[i].stop()
			}
			for i := 1; i <= 3; i++ {
				c.moves(i, freeAddress(t))
			}
			c.start(1, 2, 3)
			c.serves("all moved")
			c.has(2, "at first", "3")

			left := c.flags[3].peer
			c.kill(3)
			c.moves(3, freeAddress(t))
			c.start(3)
			c.serves("one moved")
			c.has(3, "all moved", "3")

			c.kill(2)
			c.moves(2, left)
			c.start(2)
			c.serves("one moved to where another one was")
			c.has(2, "one moved", "3")
		})
	}
}

// serves requires that each member is healthy, and that a write at each is read at the others.
func (c *trio) serves(when string) {
	c.t.Helper()
	for i := 1; i <= 3; i++ {
		c.healthy(i)
		c.put(i, when, fmt.Sprint(i))
		for j := 1; j <= 3; j++ {
			if j != i {
				c.has(j, when, fmt.Sprint(i))
			}
		}
	}
}

// moves gives a member another peer address, with which it starts.
func (c *trio) moves(i int, to string) {
	c.initial = strings.Replace(c.initial, c.flags[i].name+"=http://"+c.flags[i].peer, c.flags[i].name+"=http://"+to, 1)
	c.flags[i].peer = to
}

// freeAddress is an unused one.
func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := ports.Free("127.0.0.1", 1)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", free[0])
}

package braid_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestLanesAreTunedUnderLoad: lanes are turned on, off and on again while members propose blind commands. None is lost
// that was accepted, and none takes effect twice. A member that restarts with the options of raft has lanes as the log
// says.
func TestLanesAreTunedUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	c.how = braid.ProposeOptions{Mode: braid.ModeAccepted}
	c.leader()
	loading, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var mu sync.Mutex
	var acked []string
	early := map[bool]int{}
	for id, n := range c.nodes {
		load.Go(func() {
			for i := 0; loading.Err() == nil; i++ {
				command := fmt.Sprintf("%s-%d", id, i)
				result, err := n.ProposeWith(c.ctx(), []byte(command), nil, c.how)
				if err != nil {
					continue
				}
				_, accepted := result.(*braid.Accepted)
				mu.Lock()
				acked = append(acked, command)
				early[accepted]++
				mu.Unlock()
			}
		})
	}
	tune := func(lanes string) {
		p, err := c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{"lanes": lanes}})
		require.NoError(t, err)
		require.Equal(t, lanes, p.Settings["lanes"])
	}
	earlyNow := func() int {
		mu.Lock()
		defer mu.Unlock()
		return early[true]
	}
	for range 2 {
		tune("true")
		require.True(t, c.any().MayAnswerEarly())
		before := earlyNow()
		require.Eventually(t, func() bool { return earlyNow() > before+20 }, testTimeout, time.Millisecond)
		tune("false")
	}
	end()
	load.Wait()
	c.verify(acked)

	tune("true")
	id := c.leader()%3 + 1
	c.stop(id)
	c.start(c.members[id-1], false)
	require.Eventually(t, c.nodes[id].AnswersEarly, testTimeout, time.Millisecond)
	c.verify(append(acked, c.fill("after", 5)...))
}

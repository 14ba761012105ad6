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
// says. Meanwhile the log gets other instances and loses them, whether it began with one or was merged from the
// beginning on.
func TestLanesAreTunedUnderLoad(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*braid.Options){"raft": nil, "niagara": woven(2), "niagara of one": woven(1),
		"niagara with lanes": func(o *braid.Options) {
			o.Protocol = braid.With(o.Protocol, "order=niagara", "instances=2", "lanes=true")
		}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lanesAreTunedUnderLoad(newCluster(t, 3, begin))
		})
	}
}

func lanesAreTunedUnderLoad(c *cluster) {
	t := c.t
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
	tune := func(name, text string) {
		p, err := c.any().Tune(c.ctx(), braid.Tuning{Set: map[string]string{name: text}})
		require.NoError(t, err)
		require.Equal(t, text, p.Settings[name])
	}
	earlyNow := func() int {
		mu.Lock()
		defer mu.Unlock()
		return early[true]
	}
	more := func() {
		before := earlyNow()
		require.Eventually(t, func() bool { return earlyNow() > before+20 }, testTimeout, time.Millisecond)
	}
	require.True(t, c.any().MayAnswerEarly())
	for _, instances := range []string{"3", "1"} {
		tune("lanes", "true")
		more()
		tune("instances", instances)
		more()
		tune("lanes", "false")
	}
	end()
	load.Wait()
	c.verify(acked)

	tune("lanes", "true")
	tune("instances", "2")
	id := c.leader()%3 + 1
	c.stop(id)
	c.start(c.members[id-1], false)
	require.Eventually(t, c.nodes[id].AnswersEarly, testTimeout, time.Millisecond)
	c.verify(append(acked, c.fill("after", 5)...))
}

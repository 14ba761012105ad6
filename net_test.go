package braid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// TestNetOfRegions: links take what lies between their members' regions, which are found by name, and
// change while they are in use.
func TestNetOfRegions(t *testing.T) {
	l := newLibrary(t, 3, func(o *braid.Options) {
		o.Protocol = braid.Raft{}
		o.Members = slices.Clone(o.Members)
		for i := range o.Members {
			o.Members[i].Name = fmt.Sprintf("m%d", i+1)
		}
		o.Experiment.Net = "regions=eu-west-1+eu-west-2+eu-central-1"
		o.Answer = func(_ context.Context, _ braid.MemberID, b []byte) ([]byte, error) { return b, nil }
	})
	ask := func(from, to braid.MemberID) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		_, err := l.nodes[from].Ask(ctx, to, []byte("x"))
		return time.Since(began), err
	}
	expect := func(want map[[2]braid.MemberID]time.Duration) {
		t.Helper()
		for pair, trip := range want {
			// Links may not be up yet. A busy machine may be late, but not always, and nothing is early.
			took, err := ask(pair[0], pair[1])
			for end := time.Now().Add(30 * time.Second); (err != nil || took > trip*5/4+5*time.Millisecond) && time.Now().Before(end); {
				took, err = ask(pair[0], pair[1])
			}
			require.NoError(t, err, "%v", pair)
			require.LessOrEqual(t, took, trip*5/4+5*time.Millisecond, "%v", pair)
			require.GreaterOrEqual(t, took, trip, "%v", pair)
		}
	}
	const ms = time.Millisecond
	expect(map[[2]braid.MemberID]time.Duration{{1, 2}: 14 * ms, {2, 1}: 14 * ms, {1, 3}: 27 * ms, {3, 2}: 18 * ms})
	for _, n := range l.nodes {
		require.NoError(t, n.SetNet("latency=1ms;1>2:latency=10ms"))
	}
	expect(map[[2]braid.MemberID]time.Duration{{1, 2}: 11 * ms, {2, 1}: 11 * ms, {1, 3}: 2 * ms})
	require.ErrorContains(t, l.nodes[1].SetNet("latency=5"), "missing unit")
	for _, n := range l.nodes {
		require.NoError(t, n.SetNet(""))
	}
	expect(map[[2]braid.MemberID]time.Duration{{1, 2}: 0})
}

// TestLeadershipIsHandedOverWhileLinksAreMadeAnew: links that begin to be emulated are reestablished, so that a message
// may be lost. It is sent again.
func TestLeadershipIsHandedOverWhileLinksAreMadeAnew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, func(o *braid.Options) { o.ElectionTimeout = 2 * time.Second })
	leader := c.leader()
	for _, n := range c.nodes {
		require.NoError(t, n.SetNet("latency=5ms"))
	}
	require.Eventually(t, func() bool {
		err := c.nodes[leader].TransferLeader(c.ctx(), leader%5+1)
		if refused := (*braid.RefusedError)(nil); errors.As(err, &refused) && refused.Reason == protocol.ReasonNoAnswer {
			return false // the link is not reestablished yet
		}
		return assert.NoError(t, err)
	}, 30*time.Second, 10*time.Millisecond)
}

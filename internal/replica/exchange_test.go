package replica

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// TestTheMemberThatSendsAStateStops: a member agrees to send its state and is disconnected before it has begun. The
// member with the damaged state asks another one soon.
func TestTheMemberThatSendsAStateStops(t *testing.T) {
	inBubble(t, setting{size: 3, durable: true}, func(c *testCluster) {
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

// TestASnapshotThatNobodySendsAnyMore waits behind another one. It releases its place on the links when its sender is
// gone: there are few.
func TestASnapshotThatNobodySendsAnyMore(t *testing.T) {
	inBubble(t, setting{size: 3}, func(c *testCluster) {
		c.fill(c.leader(), "x", 1)
		r := c.running[c.follower()]
		at, configs := r.apply.at()
		o := member.SnapshotOffer{Meta: member.Meta{Cursor: at, Config: configs[0]}, HasState: true}
		o.Cursor.Points = slices.Clone(at.Points)
		o.Cursor.Position += 1000
		o.Cursor.Points[0].Index += 1000
		meta, err := json.Marshal(&o)
		require.NoError(c.t, err)
		body, more := io.Pipe()
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- r.HandleSnapshot(c.t.Context(), uint64(c.leader()), meta, body) }()
		_, err = more.Write([]byte("half of it"))
		require.NoError(c.t, err)

		ctx, gone := context.WithCancelCause(c.t.Context())
		go func() { second <- r.HandleSnapshot(ctx, uint64(c.leader()), meta, strings.NewReader("")) }()
		synctest.Wait()
		require.Empty(c.t, second, "it waits")
		cause := errors.New("the sender is gone")
		gone(cause)
		synctest.Wait()
		require.Len(c.t, second, 1)
		require.ErrorIs(c.t, <-second, cause)

		more.CloseWithError(cause)
		require.ErrorIs(c.t, <-first, cause)
	})
}

package braid_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// TestReadyUnderLoad: a member that works is always a moment behind, and ready all the same.
func TestReadyUnderLoad(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader := c.nodes[c.leader()]
	ctx, cancel := context.WithCancel(c.ctx())
	defer cancel()
	for i := range 20 {
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = leader.Propose(ctx, fmt.Appendf(nil, "%d of %d", n, i))
			}
		}()
	}
	for range 100 {
		for id, n := range c.nodes {
			require.NoError(t, braid.Ready(ctx, n), "member %d", id)
		}
	}
}

// readiness is a member for [braid.Ready] to judge.
type readiness struct {
	leaders []braid.MemberID // of the instances
	barrier func(ctx context.Context) error
}

func (r readiness) Status() (st braid.Status) {
	for i, leader := range r.leaders {
		st.Instances = append(st.Instances, protocol.Status{Instance: braid.InstanceID(i + 1), Leader: leader})
	}
	return st
}

func (r readiness) ReadBarrier(ctx context.Context) error { return r.barrier(ctx) }

func (r readiness) Done() <-chan struct{} { return nil }

func (r readiness) Err() error { return nil }

// expelledMember has stopped, and its own log does not say that it was removed.
type expelledMember struct{ readiness }

func (expelledMember) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (expelledMember) Err() error { return &braid.ExpelledError{Member: 1, By: 2} }

// removedFrom is a member that the first instances continue without.
type removedFrom struct {
	readiness
	instances int
}

func (r removedFrom) Status() braid.Status {
	st := r.readiness.Status()
	st.Self = 1
	for i := range r.instances {
		st.Instances[i].Removed = true
	}
	return st
}

// countedContext counts the functions that its end would call.
type countedContext struct {
	context.Context
	hooks atomic.Int64
}

// Value hides the context inside, on which package context would call AfterFunc otherwise.
func (c *countedContext) Value(any) any { return nil }

// AfterFunc is called by package context for what is derived from the context.
func (c *countedContext) AfterFunc(f func()) (stop func() bool) {
	c.hooks.Add(1)
	unhook := context.AfterFunc(c.Context, f)
	return func() bool {
		if !unhook() {
			return false
		}
		c.hooks.Add(-1)
		return true
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	level := func(context.Context) error { return nil }
	stuck := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refused := func(context.Context) error { return braid.ErrStopped }
	require.NoError(t, braid.Ready(t.Context(), readiness{[]braid.MemberID{1, 2}, level}))
	require.NoError(t, braid.Ready(t.Context(), removedFrom{readiness{[]braid.MemberID{1, 2}, level}, 1}))
	var expelled *braid.ExpelledError
	require.ErrorAs(t, braid.Ready(t.Context(), removedFrom{readiness{[]braid.MemberID{1, 2}, level}, 2}), &expelled)
	require.Equal(t, braid.MemberID(1), expelled.Member)
	require.ErrorIs(t, braid.Ready(t.Context(), readiness{nil, level}), braid.ErrNoLeader)
	err := braid.Ready(t.Context(), readiness{[]braid.MemberID{1, 0}, level})
	require.ErrorIs(t, err, braid.ErrNoLeader)
	require.ErrorContains(t, err, "of instance 2")
	require.ErrorIs(t, braid.Ready(t.Context(), readiness{[]braid.MemberID{1}, refused}), braid.ErrStopped)
	stopped := braid.Ready(t.Context(), expelledMember{readiness{[]braid.MemberID{0}, level}})
	require.ErrorIs(t, stopped, braid.ErrStopped)
	require.ErrorAs(t, stopped, &expelled)
	require.NotErrorIs(t, stopped, braid.ErrNoLeader)
	began := time.Now()
	require.ErrorIs(t, braid.Ready(t.Context(), readiness{[]braid.MemberID{1}, stuck}), braid.ErrReadTimeout)
	require.GreaterOrEqual(t, time.Since(began), braid.ReadyWithin)
	short, end := context.WithTimeout(t.Context(), time.Millisecond)
	defer end()
	err = braid.Ready(short, readiness{[]braid.MemberID{1}, stuck})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotContains(t, err.Error(), "behind", "no one waited so long")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, braid.Ready(gone, readiness{[]braid.MemberID{1}, stuck}), context.Canceled)
}

func TestWaitReady(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	require.NoError(t, n.WaitReady(ctx), "it waits for a leader")
	require.NoError(t, braid.Ready(ctx, n))
	lasting := &countedContext{Context: ctx}
	require.NoError(t, n.WaitReady(lasting))
	require.Zero(t, lasting.hooks.Load(), "what still waits for the end of a context that may last for days")

	url := []string{"http://127.0.0.1:9"}
	alone := sole(t, []braid.Member{{ID: 1, PeerURLs: url}, {ID: 2, PeerURLs: url}})
	short, end := context.WithTimeout(ctx, 20*time.Millisecond)
	defer end()
	err := alone.WaitReady(short)
	require.ErrorIs(t, err, braid.ErrNoLeader)
	require.ErrorIs(t, err, braid.ErrReadTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	told := make(chan error, 1)
	go func() { told <- alone.WaitReady(ctx) }()
	require.NoError(t, alone.Close())
	require.ErrorIs(t, <-told, braid.ErrStopped)
}

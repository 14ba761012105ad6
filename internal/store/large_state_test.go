package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

func (n *large) live() (out []BodyRef) {
	require.NoError(n.t, n.LiveBodies(func(ref BodyRef) { out = append(out, ref) }))
	return out
}

// TestLargeReopen counts again what the database holds: what nothing uses is not among it.
func TestLargeReopen(t *testing.T) {
	b := newFakeBodies()
	o := largeOptions(t.TempDir(), b)
	n := &large{node: open(t, o), bodies: b}
	n.put("a", big('a', 5000))
	n.put("b", big('b', 6000))
	n.must(&pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("b"), IgnoreValue: true}})
	n.put("c", big('c', 7000))
	n.must(del("c", ""))
	n.compact(n.Revision())
	live, size := n.live(), n.BodyBytes()
	require.Len(t, live, 2)
	require.EqualValues(t, 18000, size, "the one that was dropped is still kept")
	require.NoError(t, n.Close())

	n.node = open(t, o)
	require.ElementsMatch(t, live, n.live())
	require.EqualValues(t, 11000, n.BodyBytes())
	require.Equal(t, big('a', 5000), n.get("a"))
	require.Equal(t, big('b', 6000), n.get("b"))
	n.must(del("b", ""))
	n.compact(n.Revision())
	require.Len(t, n.live(), 1)
	require.NoError(t, n.Close())
	require.Error(t, n.LiveBodies(func(BodyRef) {}))
}

// TestReleaseIsDurableFirst copies the database at the moment of each release: the copy does
// not refer to the body any more.
func TestReleaseIsDurableFirst(t *testing.T) {
	b := newFakeBodies()
	o := largeOptions(t.TempDir(), nil)
	o.BackendBatchInterval = time.Hour
	gone := &checking{fakeBodies: b}
	o.Bodies = gone
	n := &large{node: open(t, o), bodies: b}
	gone.released = func(ref BodyRef) {
		c := open(t, largeOptions(clone(t, o.Dir), newFakeBodies()))
		defer func() { require.NoError(t, c.Close()) }()
		require.NoError(t, c.LiveBodies(func(live BodyRef) { require.NotEqual(t, ref, live) }))
	}
	for i := range 10 {
		n.put("k", big('a'+byte(i), 3000+i))
	}
	n.compact(n.Revision())
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	require.Equal(t, 9, gone.count)
	require.NoError(t, n.Close())
}

// checking calls back with what is released.
type checking struct {
	*fakeBodies
	released func(BodyRef)
	count    int
}

func (c *checking) Release(ref BodyRef) {
	c.count++
	c.released(ref)
}

// TestLargeRestore replaces a state by another member's, whose bodies are the only ones that
// count from then on: what waited to be released here is forgotten.
func TestLargeRestore(t *testing.T) {
	from, to := openLarge(t), openLarge(t)
	for _, n := range []*large{from, to} {
		n.put("a", big('a', 5000))
		n.put("b", big('b', 6000))
		n.put("a", "small")
	}
	to.compact(to.Revision())
	require.Len(t, to.live(), 1)
	for _, key := range []string{"x", "y"} {
		from.put(key, big('x', 4000))
	}
	require.NoError(t, to.Restore(snapshotReader(from.node)))
	to.next = to.Applied() + 1
	to.bodies.set(func() {
		for ref, body := range from.bodies.bodies {
			to.bodies.bodies[ref] = body
		}
	})
	require.ElementsMatch(t, from.live(), to.live())
	require.Len(t, to.live(), 4)
	require.NoError(t, to.releaser.release(time.Now().Add(time.Hour)))
	_, released := to.bodies.count()
	require.Zero(t, released)
	old, err := to.Range(context.Background(), &pb.RangeRequest{Key: []byte("a"), Revision: 2})
	require.NoError(t, err)
	require.Equal(t, big('a', 5000), string(old.Kvs[0].Value))
	require.Equal(t, big('x', 4000), to.get("y"))

	// Compaction follows in the database that is there now.
	to.compact(to.Revision())
	require.Len(t, to.live(), 3)
	require.NoError(t, to.releaser.release(time.Now().Add(time.Hour)))
	_, released = to.bodies.count()
	require.Equal(t, 1, released)
}

// TestClientSnapshotPinsItsBodies releases while a snapshot is being made: not before.
func TestClientSnapshotPinsItsBodies(t *testing.T) {
	n := openLarge(t)
	refs := n.database().refs
	n.put("k", big('a', 5000))
	n.put("k", "small")
	refs.pin(1)
	n.compact(n.Revision())
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	held, _ := n.bodies.count()
	require.Equal(t, 1, held)
	refs.pin(-1)
	require.NoError(t, n.releaser.release(time.Now().Add(time.Hour)))
	held, _ = n.bodies.count()
	require.Zero(t, held)

	n.put("k", big('b', 5000))
	n.bodies.set(func() { n.bodies.fail = errAway })
	_, err := n.SnapshotForClients(context.Background())
	require.ErrorIs(t, err, errAway)
	require.Zero(t, refs.pins)
	n.bodies.set(func() { n.bodies.fail = nil })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = n.SnapshotForClients(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, n.saved(t))
}

// TestLargeEventsAreShared resolves copies: the store's own stay as they are.
func TestLargeEventsAreShared(t *testing.T) {
	n := openLarge(t)
	stream := n.KV().NewWatchStream()
	defer stream.Close()
	_, err := stream.Watch(context.Background(), 0, []byte("k"), nil, 0)
	require.NoError(t, err)
	n.put("k", big('a', 5000))
	kv := within(t, stream.Chan()).Events[0].Kv
	require.True(t, IsReference(kv))
	require.Equal(t, 5000, n.ValueSize(kv))
	copied := &mvccpb.KeyValue{Key: kv.Key, Value: kv.Value, ModRevision: kv.ModRevision}
	require.NoError(t, n.Resolve(context.Background(), copied))
	require.Equal(t, big('a', 5000), string(copied.Value))
	require.True(t, IsReference(kv))
}

// TestCompareUnderWrites compares large values while they change: a transaction takes effect
// on what it compared, or not at all.
func TestCompareUnderWrites(t *testing.T) {
	n := openLarge(t)
	ctx := context.Background()
	n.put("k", big('b', 5000))
	request := &pb.InternalRaftRequest{Txn: &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte("k"), RangeEnd: []byte("m"), Target: pb.Compare_VALUE, Result: pb.Compare_GREATER,
			TargetUnion: &pb.Compare_Value{Value: []byte(big('a', 5000))}}},
		Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("won"), Value: []byte("x")}}}},
	}}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"written", func() { n.put("k", big('a', 3000)) }},
		{"added", func() { n.put("l", "a") }},
		{"deleted", func() { n.must(del("l", "")) }},
	} {
		e, err := n.EncodeResolved(ctx, request)
		require.NoError(t, err)
		c.change()
		require.ErrorIs(t, n.order(e).Err, ErrUnresolved, c.name)
		require.Empty(t, n.get("won"), c.name)
	}
	n.put("k", big('b', 5000))
	n.put("elsewhere", big('a', 3000))
	resp := n.must(request).(*pb.TxnResponse)
	require.Equal(t, n.get("won") == "x", resp.Succeeded)
	n.must(del("l", ""))
	require.True(t, n.must(request).(*pb.TxnResponse).Succeeded)
	require.Equal(t, "x", n.get("won"))

	// Who may not read what is compared learns nothing.
	enableAuth(n.node)
	_, err := n.EncodeResolved(ctx, request)
	require.Error(t, err)
}

// TestLargeConcurrently runs readers, watchers, compaction, releases and snapshots at the same time.
func TestLargeConcurrently(t *testing.T) {
	n := openLarge(t, func(o *Options) { o.ReleaseGrace = 500 * time.Millisecond })
	n.StartReleasing()
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	var reads, snapshots atomic.Int64
	check := func(key, value []byte) {
		if len(value) > 0 && !bytes.HasPrefix(value, key) {
			t.Errorf("%s=%.20s", key, value)
		}
	}
	for range 3 {
		group.Go(func() {
			for ctx.Err() == nil {
				r, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
				if err != nil {
					t.Errorf("range: %v", err)
					return
				}
				for _, kv := range r.Kvs {
					check(kv.Key, kv.Value)
				}
				reads.Add(1)
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			s, err := n.SnapshotForClients(context.Background())
			if err != nil {
				t.Errorf("snapshot: %v", err)
				return
			}
			if err := errors.Join(s.WriteTo(context.Background(), new(bytes.Buffer)), s.Close()); err != nil {
				t.Errorf("snapshot: %v", err)
			}
			snapshots.Add(1)
		}
	})
	stream := n.KV().NewWatchStream()
	_, err := stream.Watch(ctx, 0, []byte("k"), []byte("l"), 0)
	require.NoError(t, err)
	group.Go(func() {
		for resp := range stream.Chan() {
			for _, e := range resp.Events {
				kv := &mvccpb.KeyValue{Key: e.Kv.Key, Value: e.Kv.Value, ModRevision: e.Kv.ModRevision}
				if err := n.Resolve(context.Background(), kv); err != nil && !errors.Is(err, mvcc.ErrCompacted) {
					t.Errorf("event: %v", err)
				}
				check(kv.Key, kv.Value)
			}
		}
	})
	for i := 0; i < 300 || reads.Load() < 20 || snapshots.Load() < 3; i++ {
		key := fmt.Sprintf("k%d", i%5)
		n.put(key, key+big('x', 1000+i%3000))
		if i%20 == 19 {
			n.compact(n.Revision() - 3)
		}
	}
	stop()
	stream.Close()
	group.Wait()
	require.Eventually(t, func() bool { held, _ := n.bodies.count(); return held <= 10 }, 20*time.Second, time.Millisecond)
	keep := n.live()
	slices.SortFunc(keep, func(a, b BodyRef) int { return int(a.Index) - int(b.Index) })
	require.LessOrEqual(t, len(slices.Compact(keep)), 8)
}

// TestClientSnapshotOfARestoredState: the state is replaced while a snapshot waits for the end of a defragmentation.
// The snapshot has the large values of the state that it is of.
func TestClientSnapshotOfARestoredState(t *testing.T) {
	from, to := openLarge(t), openLarge(t)
	value := big('x', 4000)
	from.put("x", value)
	require.NoError(t, to.frozen.exclude(t.Context()))
	saved := make(chan []byte, 1)
	runUntilItWaits(func() {
		var b bytes.Buffer
		to.clientSnapshot(&b)
		saved <- b.Bytes()
	})
	require.NoError(t, to.Restore(snapshotReader(from.node)))
	to.bodies.set(func() {
		for ref, body := range from.bodies.bodies {
			to.bodies.bodies[ref] = body
		}
	})
	to.frozen.admit()
	require.True(t, bytes.Contains(<-saved, []byte(value)))
}

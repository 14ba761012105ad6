package store

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
)

// TestAStreamEndsWithTheRight: a right that is revoked, or auth that is turned on, in the middle of a stream ends it
// before the next chunk.
func TestAStreamEndsWithTheRight(t *testing.T) {
	n := openTemp(t)
	for i := range 64 {
		n.must(put(fmt.Sprintf("a%02d", i), "value"))
	}
	chunks := func(ctx context.Context, after func()) (sent int, err error) {
		err = n.RangeStream(ctx, &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("b")}, 1<<10,
			func(*pb.RangeResponse) error {
				if sent++; sent == 1 {
					after()
				}
				return nil
			})
		return sent, err
	}
	sent, err := chunks(context.Background(), func() {})
	require.NoError(t, err)
	require.Greater(t, sent, 1)
	sent, err = chunks(context.Background(), func() { enableAuth(n) })
	require.ErrorIs(t, err, auth.ErrUserEmpty)
	require.Equal(t, 1, sent, "auth was turned on")

	root, bob := n.login("root", "r"), n.login("bob", "b")
	sent, err = chunks(bob, func() {
		require.NoError(t,
			n.doAs(root, &pb.InternalRaftRequest{AuthUserRevokeRole: &pb.AuthUserRevokeRoleRequest{Name: "bob", Role: "as"}}))
	})
	require.ErrorIs(t, err, auth.ErrAuthOldRevision)
	require.Equal(t, 1, sent, "the right was revoked")
}

// TestRestoreShowsNoKeysWithoutUsers replaces the state by one in which auth is on, and back. Who has no login
// never gets a key of that one.
func TestRestoreShowsNoKeysWithoutUsers(t *testing.T) {
	open, closed := openTemp(t), openTemp(t)
	open.must(put("key", "open"))
	closed.must(put("key", "secret"))
	for i := range 1000 { // replacing the keys takes a moment
		closed.must(put(fmt.Sprint("more", i), ""))
	}
	enableAuth(closed)
	n := openTemp(t)
	before, after := open.snapshot(), closed.snapshot()
	var stop atomic.Bool
	var readers sync.WaitGroup
	defer func() { stop.Store(true); readers.Wait() }()
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				resp, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte("key")})
				if err == nil && len(resp.Kvs) == 1 && string(resp.Kvs[0].Value) == "secret" {
					t.Error("a key was read without a login")
					return
				}
			}
		})
	}
	for range 8 {
		require.NoError(t, n.Restore(bytes.NewReader(before)))
		require.NoError(t, n.Restore(bytes.NewReader(after)))
	}
}

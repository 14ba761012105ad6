package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// TestMutatedCommands applies commands with flipped bytes: whatever comes out of the order,
// a member answers and continues.
func TestMutatedCommands(t *testing.T) {
	n := openTemp(t)
	r := rand.New(rand.NewPCG(7, 7))
	log := randomLog(n, 7, 100)
	log = append(log, n.encode(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "u", Password: "p"}}),
		n.encode(&pb.InternalRaftRequest{AuthUserGrantRole: &pb.AuthUserGrantRoleRequest{User: "u", Role: "k1"}}),
		n.encode(&pb.InternalRaftRequest{AuthRoleGrantPermission: &pb.AuthRoleGrantPermissionRequest{Name: "k1"}}),
		n.encode(&pb.InternalRaftRequest{AuthStatus: &pb.AuthStatusRequest{}}))
	for range 300 {
		batch := make([][]byte, 20)
		for i := range batch {
			batch[i] = bytes.Clone(log[r.IntN(len(log))])
			for range r.IntN(3) {
				if len(batch[i]) > 0 {
					batch[i][r.IntN(len(batch[i]))] ^= byte(1 << r.IntN(8))
				}
			}
		}
		n.raw(batch...)
	}
	require.NoError(t, n.Err())
}

// TestConcurrentUse reads, watches, takes snapshots, hashes and defragments while commands
// are applied and the state is replaced.
func TestConcurrentUse(t *testing.T) {
	n, other := openTemp(t), openTemp(t)
	other.raw(make([][]byte, 1000)...) // ahead of anything that n applies before its Restore
	other.must(put("restored", "x"))
	later := other.snapshot()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var users sync.WaitGroup
	for name, use := range map[string]func() error{
		"range": func() error {
			_, err := n.Range(ctx, &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")})
			return err
		},
		"hash": func() error { _, err := n.HashKV(context.Background(), 0); return err },
		"client snapshot": func() error {
			snap, err := n.SnapshotForClients(context.Background())
			if err != nil {
				return nil // defragmenting
			}
			defer snap.Close()
			return snap.WriteTo(context.Background(), new(bytes.Buffer))
		},
		"defragment": func() error { return n.Defragment(context.Background()) },
		"status": func() error {
			if n.DBSize() == 0 || n.StorageVersion() == "" || n.ClusterVersion() == "" {
				return fmt.Errorf("status")
			}
			return n.CheckQuota(put("a", "b"))
		},
	} {
		users.Go(func() {
			for ctx.Err() == nil {
				if err := use(); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	for i := range 16 {
		n.raw(randomLog(n, uint64(i), 10)...)
		if i == 8 {
			require.NoError(t, n.Restore(bytes.NewReader(later)))
			n.next = n.Applied() + 1
		}
	}
	cancel()
	users.Wait()
	require.Equal(t, "x", n.get("restored"))
}

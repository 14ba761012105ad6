package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

func TestMain(m *testing.M) {
	// etcd's own checks: who may lock the database when, and that its buffers agree with it.
	os.Setenv("ETCD_VERIFY", "all")
	os.Exit(m.Run())
}

// testOptions are small and quick: fsyncs are left out, history is removed at once.
func testOptions(dir string) Options {
	return Options{
		Dir: dir, ClusterID: 0xc1, MemberID: 0xa1, NoSync: true, BcryptCost: 4,
		CompactionSleepInterval: time.Microsecond, Leases: LeaseOptions{RetryInterval: 10 * time.Millisecond},
	}
}

// node is a store under test and the next position.
type node struct {
	*Store
	t    testing.TB
	next uint64
}

func open(t testing.TB, o Options) *node {
	t.Helper()
	s, err := Open(o)
	require.NoError(t, err)
	n := &node{Store: s, t: t, next: s.Applied() + 1}
	return n
}

func openTemp(t testing.TB) *node {
	n := open(t, testOptions(t.TempDir()))
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// raw applies encoded commands at the next positions.
func (n *node) raw(data ...[]byte) []*Result {
	n.t.Helper()
	commands := make([]Command, len(data))
	for i := range data {
		commands[i] = Command{Position: n.next, Data: data[i]}
		n.next++
	}
	require.NoError(n.t, n.Apply(commands))
	backend.VerifyBackendConsistency(n.Backend(), n.lg, true, schema.AllBuckets...)
	results := make([]*Result, len(data))
	for i := range commands {
		results[i] = commands[i].Result.(*Result)
	}
	return results
}

func (n *node) encode(r *pb.InternalRaftRequest) []byte {
	n.t.Helper()
	e, err := n.Encode(context.Background(), r)
	require.NoError(n.t, err)
	require.Empty(n.t, e.Body)
	return e.Command
}

// do applies one request and returns its result.
func (n *node) do(r *pb.InternalRaftRequest) *Result {
	n.t.Helper()
	return n.raw(n.encode(r))[0]
}

// must applies one request that has to succeed.
func (n *node) must(r *pb.InternalRaftRequest) *Result {
	n.t.Helper()
	res := n.do(r)
	require.NoError(n.t, res.Err)
	return res
}

func put(key, value string) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}
}

func putLease(key, value string, id int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: id}}
}

func del(key, end string) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}
}

func compact(rev int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: rev, Physical: true}}
}

func grant(id, ttl int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: id, TTL: ttl}}
}

func revoke(id int64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: id}}
}

func (n *node) get(key string) string {
	n.t.Helper()
	resp, err := n.Range(context.Background(), &pb.RangeRequest{Key: []byte(key)})
	require.NoError(n.t, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

// dump is everything that has to be equal on members: keys with history, leases with their
// keys, users and roles, alarms, who the primary lessor is, and the position.
func (n *node) dump() string {
	n.t.Helper()
	h, err := n.HashKV(context.Background(), 0)
	require.NoError(n.t, err)
	out := fmt.Sprintf("applied %d index %d kv %+v primary %d@%d auth %t %d\n", n.Applied(), n.ConsistentIndex(), h,
		n.Leases().Primary(), n.leases.position.Load(), n.Auth().IsAuthEnabled(), n.Auth().Revision())
	resp, err := n.KV().Range(context.Background(), []byte{0}, []byte{}, mvccRange)
	require.NoError(n.t, err)
	for _, kv := range resp.KVs {
		out += fmt.Sprintf("%s=%s rev %d/%d version %d lease %d\n", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision,
			kv.Version, kv.Lease)
	}
	for _, l := range sortedLeases(n) {
		out += l + "\n"
	}
	for _, a := range n.Alarms() {
		out += a.String() + "\n"
	}
	return out
}

// clone copies the directory as a crash of the process leaves it: without Close.
func clone(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	data, err := os.ReadFile(filepath.Join(dir, "db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(to, "db"), data, 0o600))
	return to
}

func (n *node) snapshot() []byte {
	n.t.Helper()
	snap, err := n.Snapshot()
	require.NoError(n.t, err)
	var b bytes.Buffer
	require.NoError(n.t, snap.WriteTo(context.Background(), &b))
	require.NoError(n.t, snap.Close())
	return b.Bytes()
}

func (n *node) clientSnapshot(w io.Writer) int64 {
	n.t.Helper()
	snap, err := n.SnapshotForClients(context.Background())
	require.NoError(n.t, err)
	defer snap.Close()
	require.NoError(n.t, snap.WriteTo(context.Background(), w))
	return snap.Size()
}

// within fails the test if done does not come in time.
func within[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing came")
		panic("not reached")
	}
}

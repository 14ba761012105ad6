package store

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// Plain gets have the same answers and errors as by etcd's own function, at all revisions.
func TestPlainGetsAreAsOthers(t *testing.T) {
	n := openTemp(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		if r, command := randomCommand(rng); r != nil {
			n.raw(n.encode(r))
		} else {
			n.raw(command)
		}
	}
	n.raw(n.encode(&pb.InternalRaftRequest{Compaction: &pb.CompactionRequest{Revision: n.kv.Rev() / 2}}))
	var found, failed int
	for range 3000 {
		r := &pb.RangeRequest{Key: []byte{'k', byte('0' + rng.IntN(12))}, Limit: int64(rng.IntN(3)),
			Revision: rng.Int64N(n.kv.Rev()+4) - 1}
		require.True(t, isPlainGet(r))
		want, _, wantErr := txn.Range(context.Background(), n.lg, n.kv, r, true)
		got, err := n.Range(context.Background(), r)
		require.Equal(t, wantErr, err)
		require.True(t, proto.Equal(want, got), "%v: %v, by etcd %v", r, got, want)
		if err != nil {
			failed++
		} else if got.Count > 0 {
			found++
		}
	}
	require.Greater(t, found, 300)
	require.Greater(t, failed, 300)
}

// BenchmarkGet reads one of 1,000 keys.
func BenchmarkGet(b *testing.B) {
	b.Setenv("ETCD_VERIFY", "")
	n := open(b, testOptions(b.TempDir()))
	defer n.Close()
	for i := range 1000 {
		n.raw(n.encode(put(string(rune('a'+i%26))+string(rune('a'+i/26)), "0123456789abcdef")))
	}
	r := &pb.RangeRequest{Key: []byte("cc")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.Range(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}

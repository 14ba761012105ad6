package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestWatch(t *testing.T) {
	n := openTemp(t)
	n.must(put("a", "1"))
	stream := n.KV().NewWatchStream()
	defer stream.Close()
	_, err := stream.Watch(context.Background(), clientv3.AutoWatchID, []byte("a"), []byte("c"), 2)
	require.NoError(t, err)
	n.must(put("b", "2"))
	n.must(put("z", "9"))
	n.must(del("a", ""))

	var got []string
	for len(got) < 3 {
		for _, e := range within(t, stream.Chan()).Events {
			got = append(got, e.Type.String()+" "+string(e.Kv.Key))
		}
	}
	require.Equal(t, []string{mvccpb.PUT.String() + " a", mvccpb.PUT.String() + " b", mvccpb.DELETE.String() + " a"}, got)
}

// TestWatchSurvivesRestore restores a member under an open watch: no event is lost, and
// none comes twice.
func TestWatchSurvivesRestore(t *testing.T) {
	ahead, behind := openTemp(t), openTemp(t)
	for _, n := range []*node{ahead, behind} {
		n.must(put("a", "1"))
	}
	stream := behind.KV().NewWatchStream()
	defer stream.Close()
	_, err := stream.Watch(context.Background(), clientv3.AutoWatchID, []byte("a"), nil, 0)
	require.NoError(t, err)
	for _, v := range []string{"2", "3", "4"} {
		ahead.must(put("a", v))
	}
	require.NoError(t, behind.Restore(snapshotReader(ahead)))
	behind.next = ahead.next
	behind.must(put("a", "5"))

	got := ""
	for len(got) < 4 {
		for _, e := range within(t, stream.Chan()).Events {
			got += string(e.Kv.Value)
		}
	}
	require.Equal(t, "2345", got)
}

package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"
)

// byAppliers is a command that does what the request does, and is no plain put: it has an id.
func byAppliers(t testing.TB, r *pb.InternalRaftRequest) []byte {
	r = proto.CloneOf(r)
	r.ID = 7
	data, err := encode([]byte{kindRequest}, r)
	require.NoError(t, err)
	_, _, _, plain := parsePlainPut(data)
	require.False(t, plain)
	return data
}

// Plain puts have the same answers and leave the same state as puts that go through etcd's appliers, also where an
// alarm or a prefix's quota refuses them. (The quota of the database is TestQuotaAtApply's: it depends on the member.)
func TestPlainPutsAreAsOthers(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		plain, other := openTemp(t), openTemp(t)
		plainPuts := 0
		for range 1500 {
			r, command := randomCommand(rng)
			one, two := command, command
			if r != nil {
				one, two = plain.encode(r), byAppliers(t, r)
			}
			if _, _, _, ok := parsePlainPut(one); ok {
				plainPuts++
			}
			a, b := plain.raw(one)[0], other.raw(two)[0]
			require.Equal(t, b.Err, a.Err, "%v", r)
			require.True(t, proto.Equal(b.Resp, a.Resp), "%v: %v, by etcd's appliers %v", r, a.Resp, b.Resp)
		}
		require.Greater(t, plainPuts, 500)
		require.Equal(t, other.dump(), plain.dump())
		require.Equal(t, other.PrefixQuotas(), plain.PrefixQuotas())
	}
}

// randomCommand is a request, or a command that is none.
func randomCommand(rng *rand.Rand) (*pb.InternalRaftRequest, []byte) {
	key := fmt.Sprint("k", rng.IntN(20))
	alarm := &pb.AlarmRequest{MemberID: 9, Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE}
	switch n := rng.IntN(100); {
	case n < 1:
		alarm.Action = pb.AlarmRequest_ACTIVATE
		return &pb.InternalRaftRequest{Alarm: alarm}, nil
	case n < 5:
		return &pb.InternalRaftRequest{Alarm: alarm}, nil
	case n < 6:
		return nil, quotaOf("k1", 200, 3)
	case n < 10:
		return nil, quotaOf("k1", 0, 0)
	case n < 15:
		return grant(int64(1+rng.IntN(3)), 100), nil
	case n < 20:
		return putLease(key, "leased", int64(1+rng.IntN(5))), nil
	case n < 30:
		return del(key, ""), nil
	case n < 35:
		return &pb.InternalRaftRequest{Txn: writingTxn(&pb.RangeRequest{Key: []byte(key)})}, nil
	case n < 40:
		return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte(key), PrevKv: true}}, nil
	}
	return put(key, string(make([]byte, rng.IntN(40)))), nil
}

// A value that looks like a record, the events of a put, and the end of a lease's hold on its key are as by etcd's
// appliers.
func TestPlainPutsOfSpecialKeysAndValues(t *testing.T) {
	seen := make([][]string, 2)
	nodes := []*node{openTemp(t), openTemp(t)}
	for i, n := range nodes {
		w := n.KV().NewWatchStream()
		defer w.Close()
		_, err := w.Watch(t.Context(), 0, []byte{0}, []byte{}, 0)
		require.NoError(t, err)
		apply := func(r *pb.InternalRaftRequest) {
			data, err := encode([]byte{kindRequest}, r)
			require.NoError(t, err)
			if i == 1 {
				data = byAppliers(t, r)
			}
			require.NoError(t, n.raw(data)[0].Err)
			for _, event := range within(t, w.Chan()).Events {
				seen[i] = append(seen[i], event.String())
			}
		}
		require.NoError(t, n.raw(mustEncode(t, grant(7, 100)))[0].Err)
		for _, key := range []string{"k", "\x00", "\x00\x00", "\xff"} {
			for _, value := range []string{"v", string(recordOf([]byte("v")).encode()), recordMagic, ""} {
				apply(putLease(key, "leased", 7))
				apply(put(key, value))
				require.Empty(t, n.Lessor().Lookup(7).Keys())
			}
		}
	}
	require.Equal(t, seen[1], seen[0])
	require.Equal(t, nodes[1].dump(), nodes[0].dump())
}

// With authentication a plain put, which names no user, is refused.
func TestPlainPutsAreRefusedWithoutUser(t *testing.T) {
	n := openTemp(t)
	data := n.encode(put("a", "1"))
	enableAuth(n)
	require.ErrorIs(t, n.raw(data)[0].Err, auth.ErrUserEmpty)
	require.NoError(t, n.doAs(n.login("bob", "b"), put("a", "2")))
	root := n.login("root", "r")
	require.NoError(t, n.doAs(root, &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}))
	require.NoError(t, n.raw(data)[0].Err)
	require.Equal(t, "1", n.get("a"))
}

// The answer and the events of a plain put do not change if the command's bytes do: Data is not retained.
func TestPlainPutsAreCopied(t *testing.T) {
	n := openTemp(t)
	w := n.KV().NewWatchStream()
	defer w.Close()
	_, err := w.Watch(context.Background(), 0, []byte("key"), nil, 0)
	require.NoError(t, err)
	data := n.encode(put("key", "value"))
	n.raw(data)
	clear(data)
	event := within(t, w.Chan()).Events[0]
	require.Equal(t, "key=value", fmt.Sprintf("%s=%s", event.Kv.Key, event.Kv.Value))
	require.Equal(t, "value", n.get("key"))
}

func TestPlainPutsAreRecognized(t *testing.T) {
	for name, r := range map[string]*pb.PutRequest{
		"previous":   {Key: []byte("k"), PrevKv: true},
		"same value": {Key: []byte("k"), IgnoreValue: true}, "same lease": {Key: []byte("k"), IgnoreLease: true},
		"no key": {Value: []byte("v")},
	} {
		_, _, _, ok := parsePlainPut(mustEncode(t, &pb.InternalRaftRequest{Put: r}))
		require.False(t, ok, name)
	}
	_, _, _, ok := parsePlainPut(mustEncode(t, &pb.InternalRaftRequest{Header: &pb.RequestHeader{Username: "u"},
		Put: &pb.PutRequest{Key: []byte("k")}}))
	require.False(t, ok, "with a user")
	for _, value := range []string{"", "v"} {
		for _, lease := range []int64{0, 1, -1} {
			key, got, id, ok := parsePlainPut(mustEncode(t, putLease("k", value, lease)))
			require.True(t, ok)
			require.Equal(t, []string{"k", value}, []string{string(key), string(got)})
			require.EqualValues(t, lease, id)
		}
	}
}

func mustEncode(t testing.TB, r *pb.InternalRaftRequest) []byte {
	data, err := encode([]byte{kindRequest}, r)
	require.NoError(t, err)
	return data
}

// FuzzPlainPut: bytes are a plain put only if etcd's decoder finds exactly that in them.
func FuzzPlainPut(f *testing.F) {
	f.Add(mustEncode(f, put("k", "v")))
	f.Add(mustEncode(f, putLease("k", "v", 7)))
	f.Add(mustEncode(f, &pb.InternalRaftRequest{Txn: writingTxn(&pb.RangeRequest{Key: []byte("k")})}))
	f.Add([]byte{kindRequest, 0x22, 0x06, 0x0a, 0x01, 'k', 0x0a, 0x01, 'l'})
	f.Fuzz(func(t *testing.T, data []byte) {
		key, value, id, ok := parsePlainPut(data)
		if !ok {
			return
		}
		c, err := decode(data)
		require.NoError(t, err)
		want := &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: key, Value: value, Lease: int64(id)}}
		require.True(t, proto.Equal(want, c.request), "%q: %v", data, c.request)
	})
}

// FuzzPlainGrant: bytes are a plain grant only if etcd's decoder finds exactly that in them.
func FuzzPlainGrant(f *testing.F) {
	for _, r := range []*pb.InternalRaftRequest{grant(1, 100), grant(-1, 0), grant(0, -7), put("k", "v"), revoke(1)} {
		f.Add(mustEncode(f, r))
	}
	f.Add([]byte{kindRequest, 0x42, 0x04, 0x10, 0x01, 0x08, 0x02})
	f.Fuzz(func(t *testing.T, data []byte) {
		id, ttl, ok := parsePlainGrant(data)
		if !ok {
			return
		}
		c, err := decode(data)
		require.NoError(t, err)
		want := &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{ID: int64(id), TTL: ttl}}
		require.True(t, proto.Equal(want, c.request), "%q: %v", data, c.request)
	})
}

// A plain put allocates three times: its key, its value, and its answer. The rest is allocated by etcd's keys and by
// bbolt (docs/reports/performance.md).
func TestAllocationsOfAPlainPut(t *testing.T) {
	t.Setenv("ETCD_VERIFY", "")
	n := openTemp(t)
	const batch = 100
	commands := make([]Command, batch)
	data := make([][]byte, batch)
	for i := range data {
		data[i] = n.encode(put(fmt.Sprintf("key-%08d", i), "0123456789abcdef"))
	}
	allocs := testing.AllocsPerRun(20, func() {
		for i := range commands {
			commands[i] = Command{Position: n.next, Data: data[i]}
			n.next++
		}
		require.NoError(t, n.Apply(commands))
	})
	require.Less(t, allocs/batch, 23.5)
}

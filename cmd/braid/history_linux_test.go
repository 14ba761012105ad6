package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A history is requests that a client makes one after the other, of members in turn. Whatever
// the protocol, the answers must be the same, to the revision.
type history struct {
	random *rand.Rand
	leases []int64 // granted, perhaps revoked
	grants int64
	steps  []proto.Message
}

// writeHistory makes n requests, the same for the same seed, of all kinds that depend on order.
func writeHistory(seed uint64, n int) []proto.Message {
	h := &history{random: rand.New(rand.NewPCG(seed, 1))}
	for range n {
		h.steps = append(h.steps, h.request())
	}
	return h.steps
}

func (h *history) key() []byte { return fmt.Appendf(nil, "k%02d", h.random.IntN(12)) }

// lease is mostly a granted one, and occasionally none or an unknown one.
func (h *history) lease() int64 {
	switch n := h.random.IntN(10); {
	case n < 7 || len(h.leases) == 0:
		return 0
	case n < 8:
		return 999_999
	}
	return h.leases[h.random.IntN(len(h.leases))]
}

func (h *history) request() proto.Message {
	switch n := h.random.IntN(100); {
	case n < 35:
		return h.put()
	case n < 45:
		return h.delete()
	case n < 65:
		return h.txn(2)
	case n < 85:
		return h.get()
	case n < 90:
		h.grants++
		h.leases = append(h.leases, 1000+h.grants)
		return &pb.LeaseGrantRequest{ID: 1000 + h.grants, TTL: 3600}
	case n < 93:
		return &pb.LeaseRevokeRequest{ID: h.lease()}
	case n < 96:
		return &pb.LeaseTimeToLiveRequest{ID: h.lease(), Keys: true}
	case n < 97:
		return &pb.LeaseLeasesRequest{}
	case n < 98:
		return &pb.AuthUserAddRequest{Name: fmt.Sprintf("u%d", h.random.IntN(3)),
			Options: &authpb.UserAddOptions{NoPassword: true}}
	case n < 99:
		return &pb.AuthUserDeleteRequest{Name: fmt.Sprintf("u%d", h.random.IntN(3))}
	}
	return &pb.AuthUserListRequest{}
}

func (h *history) put() *pb.PutRequest {
	r := &pb.PutRequest{Key: h.key(), Value: fmt.Appendf(nil, "v%d", h.random.IntN(5)), Lease: h.lease(),
		PrevKv: h.random.IntN(2) == 0}
	switch h.random.IntN(10) {
	case 0:
		r.IgnoreValue, r.Value = true, nil
	case 1:
		r.IgnoreLease, r.Lease = true, 0
	}
	return r
}

func (h *history) delete() *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{Key: h.key(), PrevKv: h.random.IntN(2) == 0}
	if h.random.IntN(3) == 0 {
		r.RangeEnd = []byte("k99")
	}
	return r
}

func (h *history) get() *pb.RangeRequest {
	r := &pb.RangeRequest{
		Key: h.key(), Limit: int64(h.random.IntN(4)), KeysOnly: h.random.IntN(5) == 0, CountOnly: h.random.IntN(5) == 0,
		SortOrder: pb.RangeRequest_SortOrder(h.random.IntN(3)), SortTarget: pb.RangeRequest_SortTarget(h.random.IntN(5)),
	}
	if h.random.IntN(2) == 0 {
		r.RangeEnd = []byte("k99")
	}
	if h.random.IntN(2) == 0 {
		r.Revision = int64(h.random.IntN(len(h.steps) + 2)) // of the past, of the future, or compacted
	}
	return r
}

func (h *history) txn(depth int) *pb.TxnRequest {
	r := &pb.TxnRequest{}
	for range 1 + h.random.IntN(2) {
		c := &pb.Compare{Key: h.key(), Result: pb.Compare_CompareResult(h.random.IntN(4))}
		switch h.random.IntN(4) {
		case 0:
			c.Target, c.TargetUnion = pb.Compare_VERSION, &pb.Compare_Version{Version: int64(h.random.IntN(3))}
		case 1:
			c.Target, c.TargetUnion = pb.Compare_MOD,
				&pb.Compare_ModRevision{ModRevision: int64(h.random.IntN(len(h.steps) + 1))}
		case 2:
			c.Target, c.TargetUnion = pb.Compare_VALUE, &pb.Compare_Value{Value: fmt.Appendf(nil, "v%d", h.random.IntN(5))}
		case 3:
			c.Target, c.TargetUnion = pb.Compare_LEASE, &pb.Compare_Lease{Lease: h.lease()}
		}
		r.Compare = append(r.Compare, c)
	}
	r.Success, r.Failure = h.ops(depth), h.ops(depth)
	return r
}

func (h *history) ops(depth int) (out []*pb.RequestOp) {
	for range 1 + h.random.IntN(3) {
		op := &pb.RequestOp{}
		switch n := h.random.IntN(10); {
		case n < 5:
			op.Request = &pb.RequestOp_RequestPut{RequestPut: h.put()}
		case n < 6:
			op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: h.delete()}
		case n < 8 || depth == 0:
			get := h.get()
			get.Revision = 0
			op.Request = &pb.RequestOp_RequestRange{RequestRange: get}
		default:
			op.Request = &pb.RequestOp_RequestTxn{RequestTxn: h.txn(depth - 1)}
		}
		out = append(out, op)
	}
	return out
}

// connect opens a connection to each member, without retries, by name.
func (c *cluster) connect() (conns []*grpc.ClientConn) {
	c.t.Helper()
	for _, endpoint := range c.endpoints {
		conns = append(conns, connectTo(c.t, endpoint))
	}
	return conns
}

func connectTo(t *testing.T, endpoint string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// perform makes a request and returns the parts of the answer that must not depend on the protocol.
func perform(ctx context.Context, conn *grpc.ClientConn, request proto.Message) (answer proto.Message, failure string) {
	answer, err := ask(ctx, conn, request)
	if err != nil {
		return nil, fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
	}
	m := answer.ProtoReflect()
	if field := m.Descriptor().Fields().ByName("header"); field != nil && m.Has(field) {
		header := m.Mutable(field).Message()
		for _, name := range []protoreflect.Name{"cluster_id", "member_id", "raft_term"} {
			header.Clear(header.Descriptor().Fields().ByName(name))
		}
	}
	switch r := answer.(type) {
	case *pb.LeaseTimeToLiveResponse:
		r.Header = nil                       // the member that was asked may lag behind the one that answers
		r.TTL = int64(cmp.Compare(r.TTL, 0)) // time passes
		slices.SortFunc(r.Keys, bytes.Compare)
	case *pb.LeaseLeasesResponse:
		slices.SortFunc(r.Leases, func(a, b *pb.LeaseStatus) int { return cmp.Compare(a.ID, b.ID) })
	}
	return answer, ""
}

func ask(ctx context.Context, conn *grpc.ClientConn, request proto.Message) (proto.Message, error) {
	kv, leases, users := pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewAuthClient(conn)
	switch r := request.(type) {
	case *pb.PutRequest:
		return kv.Put(ctx, r)
	case *pb.DeleteRangeRequest:
		return kv.DeleteRange(ctx, r)
	case *pb.RangeRequest:
		return kv.Range(ctx, r)
	case *pb.TxnRequest:
		return kv.Txn(ctx, r)
	case *pb.CompactionRequest:
		return kv.Compact(ctx, r)
	case *pb.LeaseGrantRequest:
		return leases.LeaseGrant(ctx, r)
	case *pb.LeaseRevokeRequest:
		return leases.LeaseRevoke(ctx, r)
	case *pb.LeaseTimeToLiveRequest:
		return leases.LeaseTimeToLive(ctx, r)
	case *pb.LeaseLeasesRequest:
		return leases.LeaseLeases(ctx, r)
	case *pb.AuthUserAddRequest:
		return users.UserAdd(ctx, r)
	case *pb.AuthUserDeleteRequest:
		return users.UserDelete(ctx, r)
	case *pb.AuthUserListRequest:
		return users.UserList(ctx, r)
	}
	return nil, fmt.Errorf("a history with a %T", request)
}

// watcher collects the events of all keys from one member.
type watcher struct {
	t      *testing.T
	stream pb.Watch_WatchClient
	events []*mvccpb.Event
}

func watchAll(t *testing.T, conn *grpc.ClientConn, from int64) *watcher {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*testTimeout)
	t.Cleanup(cancel)
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	require.NoError(t, err)
	require.NoError(t,
		stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
			Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: from, PrevKv: true,
		}}}))
	return &watcher{t: t, stream: stream}
}

// upTo collects until the event of a revision. Revisions never decrease, and none is missing.
func (w *watcher) upTo(revision int64) {
	w.t.Helper()
	for w.last() < revision {
		r, err := w.stream.Recv()
		require.NoError(w.t, err)
		require.False(w.t, r.Canceled, "%s", r.CancelReason)
		for _, e := range r.Events {
			if last := w.last(); last > 0 {
				require.Contains(w.t, []int64{last, last + 1}, e.Kv.ModRevision)
			}
			w.events = append(w.events, e)
		}
	}
	require.Equal(w.t, revision, w.last())
}

func (w *watcher) last() int64 {
	if len(w.events) == 0 {
		return 0
	}
	return w.events[len(w.events)-1].Kv.ModRevision
}

// record has all answers of a cluster to a history.
type record struct {
	requests, answers []proto.Message // an answer is nil where there is a failure
	failures          []string
	events            [][]*mvccpb.Event // by member
	again             [][]*mvccpb.Event // by member: of watches that were opened afterwards
	hashes            []uint32          // by member
}

// play runs a history on a cluster, with a compaction after each third of it.
func (c *cluster) play(steps []proto.Message) (rec record) {
	c.t.Helper()
	conns := c.connect()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*testTimeout)
	defer cancel()
	var watchers []*watcher
	for _, conn := range conns {
		watchers = append(watchers, watchAll(c.t, conn, 1))
	}
	revision, compacted := int64(1), int64(1)
	do := func(i int, request proto.Message) {
		answer, failure := perform(ctx, conns[i%len(conns)], request)
		rec.requests, rec.answers, rec.failures = append(rec.requests, request), append(rec.answers, answer),
			append(rec.failures, failure)
		if h, ok := answer.(interface{ GetHeader() *pb.ResponseHeader }); ok && failure == "" && h.GetHeader() != nil {
			revision = max(revision, h.GetHeader().Revision)
		}
	}
	for i, request := range steps {
		do(i, request)
		if (i+1)%(len(steps)/3) == 0 {
			for _, w := range watchers { // before their history is compacted
				w.upTo(revision)
			}
			compacted = revision - 20
			do(i, &pb.CompactionRequest{Revision: compacted, Physical: true})
		}
	}
	for i, w := range watchers {
		w.upTo(revision)
		rec.events = append(rec.events, w.events)
		late := watchAll(c.t, conns[i], compacted+1)
		late.upTo(revision)
		rec.again = append(rec.again, late.events)
		h, err := pb.NewMaintenanceClient(conns[i]).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
		require.NoError(c.t, err)
		rec.hashes = append(rec.hashes, h.Hash)
	}
	return rec
}

// equal requires that two clusters gave the same answers.
func (r *record) equal(t *testing.T, o *record) {
	t.Helper()
	require.Len(t, o.answers, len(r.answers))
	for i := range r.answers {
		require.Equal(t, r.failures[i], o.failures[i], "answer %d, to %T %v", i, r.requests[i], r.requests[i])
		require.True(t, proto.Equal(r.answers[i], o.answers[i]), "answer %d, to %T %v:\n%v\n%v", i, r.requests[i],
			r.requests[i], r.answers[i], o.answers[i])
	}
	for _, side := range []*record{r, o} {
		for i := range side.events {
			sameEvents(t, r.events[0], side.events[i])
			sameEvents(t, r.again[0], side.again[i])
			require.Equal(t, r.hashes[0], side.hashes[i])
		}
	}
}

func sameEvents(t *testing.T, a, b []*mvccpb.Event) {
	t.Helper()
	require.Len(t, b, len(a))
	for i := range a {
		require.True(t, proto.Equal(a[i], b[i]), "event %d: %v, %v", i, a[i], b[i])
	}
}

// calm is the environment of members with long timeouts, for tests that expect no change of leaders, however busy the
// machine is.
var calm = []string{"ETCD_ELECTION_TIMEOUT=3000", "ETCD_HEARTBEAT_INTERVAL=100"}

package server

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

func TestParseRateLimit(t *testing.T) {
	for text, want := range map[string]RateLimit{
		"bob=5": {"bob", 5}, "*=0.5": {"*", 0.5}, "/a=b/=1e3": {"/a=b/", 1000},
	} {
		l, err := ParseRateLimit(text)
		require.NoError(t, err)
		require.Equal(t, want, l)
	}
	for _, text := range []string{"", "bob", "=5", "bob=", "bob=0", "bob=-1", "bob=x", "bob=NaN", "bob=Inf"} {
		_, err := ParseRateLimit(text)
		require.ErrorContains(t, err, "request rate", text)
	}
}

func TestWhatCountsForAPrefix(t *testing.T) {
	p := newRates(nil, []RateLimit{{"b/", 1}}, nil).prefixes[0]
	get := func(key, end string) *pb.RangeRequest {
		return &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
	}
	op := func(r *pb.RangeRequest) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
	}
	for _, c := range []struct {
		req  any
		want int
	}{
		{get("b/1", ""), 1}, {get("b", ""), 0}, {get("c", ""), 0},
		{get("a", "b"), 0}, {get("a", "b/"), 0}, {get("a", "b/0"), 1}, {get("a", "c"), 1}, {get("b/5", "b/6"), 1},
		{get("b0", "c"), 0}, {get("a", "\x00"), 1}, {get("c", "\x00"), 0},
		{&pb.PutRequest{Key: []byte("b/1")}, 1}, {&pb.DeleteRangeRequest{Key: []byte("b/1")}, 1},
		{&pb.LeaseGrantRequest{}, 0},
		{&pb.TxnRequest{
			Success: []*pb.RequestOp{op(get("b/1", "")), put("b/2", "v"), put("c", "v")},
			Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{
				Failure: []*pb.RequestOp{put("b/1", ""), put("b/2", ""), put("b/3", "")}}}}},
		}, 3},
		{&pb.TxnRequest{Compare: []*pb.Compare{
			{Key: []byte("b/1")}, {Key: []byte("a"), RangeEnd: []byte("c")}, {Key: []byte("c")}}}, 2},
		{&pb.TxnRequest{Compare: []*pb.Compare{{Key: []byte("b/1")}}, Success: []*pb.RequestOp{put("b/1", "v")}}, 1},
	} {
		require.Equal(t, c.want, p.count(c.req), "%v", c.req)
	}
}

// hourly is the rate of one request an hour.
const hourly = 1.0 / 3600

// requireRefused demands a refusal that says by which limit, that a retry is safe, and when.
func requireRefused(t *testing.T, err error, kind, of string) {
	t.Helper()
	s, ok := status.FromError(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, rpctypes.ErrGRPCRequestTooManyRequests.Error(), s.Err().Error())
	require.Len(t, s.Details(), 2)
	delay := s.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration()
	require.True(t, 0 < delay && delay < 2*time.Hour, delay)
	info := s.Details()[1].(*errdetails.ErrorInfo)
	require.Equal(t, map[string]string{kind: of, "retry": "safe"}, info.Metadata)
}

// Requests of a user beyond its rate are refused, and those of others are not.
func TestRateOfAUser(t *testing.T) {
	f := start(t, func(c *Config) { c.UserRates = []RateLimit{{"*", hourly}, {"root", 1e6}} })
	ctx := testContext(t)
	root, reader := f.enableAuth(t, ctx)
	for range 10 {
		require.NoError(t, second(root.Put(ctx, "r", "v")))
	}
	require.NoError(t, second(reader.Get(ctx, "r")))
	login, err := f.client.Authenticate(ctx, "reader", "book")
	require.NoError(t, err)
	_, err = f.kvClient().Range(withLogin(ctx, login.Token), &pb.RangeRequest{Key: []byte("r")})
	requireRefused(t, err, "user", "reader")
	require.ErrorIs(t, second(reader.Get(ctx, "r")), rpctypes.ErrTooManyRequests)
	require.NoError(t, second(root.Put(ctx, "r", "v")))
	require.EqualValues(t, 2, f.measured().RefusedRequests)
}

// Requests for keys of a prefix beyond its rate are refused. Those of users without rights do not count.
func TestRateOfAPrefix(t *testing.T) {
	f := start(t, func(c *Config) { c.PrefixRates = []RateLimit{{"y/", hourly}, {"x/", hourly}} })
	ctx := testContext(t)
	root, reader := f.enableAuth(t, ctx)
	for range 10 {
		require.ErrorIs(t, second(reader.Put(ctx, "x/1", "v")), rpctypes.ErrPermissionDenied)
		require.ErrorIs(t, second(f.client.Put(ctx, "x/1", "v")), rpctypes.ErrUserEmpty)
		require.NoError(t, second(root.Put(ctx, "other", "v")))
	}
	require.NoError(t, second(root.Put(ctx, "x/1", "v")))
	require.ErrorIs(t, second(root.Get(ctx, "x", clientv3.WithPrefix())), rpctypes.ErrTooManyRequests)
	both := root.Txn(ctx).Then(clientv3.OpPut("y/1", "v"), clientv3.OpPut("x/1", "v"))
	require.ErrorIs(t, second(both.Commit()), rpctypes.ErrTooManyRequests)
	require.NoError(t, second(root.Put(ctx, "y/1", "v")), "what was refused does not count")
	login, err := f.client.Authenticate(ctx, "root", "secret")
	require.NoError(t, err)
	_, err = f.kvClient().Put(withLogin(ctx, login.Token), &pb.PutRequest{Key: []byte("x/1")})
	requireRefused(t, err, "prefix", "x/")
}

// Refused requests take nothing from those that may come, however many are refused at a time.
func TestRefusalsAtTheSameTimeCountForNothing(t *testing.T) {
	f := start(t, func(c *Config) { c.PrefixRates = []RateLimit{{"x/", hourly}} })
	ctx := testContext(t)
	limiter := f.rates.prefixes[0].limiter
	require.NoError(t, f.rates.take(ctx, &pb.PutRequest{Key: []byte("x/1")}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10_000 {
				if f.rates.take(ctx, &pb.PutRequest{Key: []byte("x/1")}) == nil {
					t.Error("more than the limit")
				}
			}
		})
	}
	all.Wait()
	require.InDelta(t, 0, limiter.Tokens(), 0.1)
}

// A transaction counts with all of its operations, even if these are more than are taken at once.
func TestALargeTransactionDelaysLaterOnes(t *testing.T) {
	f := start(t, func(c *Config) { c.PrefixRates = []RateLimit{{"x/", 1}} })
	large := &pb.TxnRequest{}
	for range 100 {
		large.Success = append(large.Success, put("x/1", "v"))
	}
	require.NoError(t, f.rates.take(testContext(t), large))
	require.InDelta(t, -99, f.rates.prefixes[0].limiter.Tokens(), 1)
	requireRefused(t, f.rates.take(testContext(t), &pb.PutRequest{Key: []byte("x/1")}), "prefix", "x/")
}

// Locks and elections write keys, too.
func TestLocksAndElectionsCountForAPrefix(t *testing.T) {
	leader := &epb.LeaderKey{Key: []byte("x/e/1")}
	for _, req := range []any{
		&lpb.LockRequest{Name: []byte("x")}, &lpb.LockRequest{Name: []byte("x/l")}, &lpb.UnlockRequest{Key: []byte("x/l/1")},
		&epb.CampaignRequest{Name: []byte("x/e")}, &epb.ProclaimRequest{Leader: leader}, &epb.ResignRequest{Leader: leader},
	} {
		f := start(t, func(c *Config) { c.PrefixRates = []RateLimit{{"x/", hourly}} })
		require.NoError(t, f.rates.take(testContext(t), &lpb.LockRequest{Name: []byte("other")}))
		require.NoError(t, f.rates.take(testContext(t), req))
		requireRefused(t, f.rates.take(testContext(t), &pb.PutRequest{Key: []byte("x/1")}), "prefix", "x/")
	}
	require.NoError(t, start(t, func(c *Config) { c.PrefixRates = []RateLimit{{"x/", hourly}} }).
		rates.take(testContext(t), &epb.ProclaimRequest{}))
}

package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid/internal/testsize"
)

// enableAuth makes root, a user bob who may write and read [a, b), and turns auth on.
func enableAuth(n *node) {
	n.must(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "root", Password: "r"}})
	n.must(&pb.InternalRaftRequest{AuthUserGrantRole: &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}})
	n.must(&pb.InternalRaftRequest{AuthRoleAdd: &pb.AuthRoleAddRequest{Name: "as"}})
	n.must(&pb.InternalRaftRequest{AuthRoleGrantPermission: &pb.AuthRoleGrantPermissionRequest{Name: "as",
		Perm: &authpb.Permission{PermType: authpb.READWRITE, Key: []byte("a"), RangeEnd: []byte("b")}}})
	n.must(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "bob", Password: "b"}})
	n.must(&pb.InternalRaftRequest{AuthUserGrantRole: &pb.AuthUserGrantRoleRequest{User: "bob", Role: "as"}})
	n.must(&pb.InternalRaftRequest{AuthEnable: &pb.AuthEnableRequest{}})
}

// login returns the context of a user's calls.
func (n *node) login(name, password string) context.Context {
	n.t.Helper()
	l, err := n.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: name, Password: password})
	require.NoError(n.t, err)
	res := n.raw(l.Command)[0]
	require.NoError(n.t, res.Err)
	require.Equal(n.t, l.Revision, n.Auth().Revision())
	return withToken(res.Resp.(*pb.AuthenticateResponse).Token)
}

func withToken(token string) context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.Pairs(rpctypes.TokenFieldNameGRPC, token))
}

func (n *node) doAs(ctx context.Context, r *pb.InternalRaftRequest) error {
	n.t.Helper()
	data, err := n.Encode(ctx, r)
	if err != nil {
		return err
	}
	return n.raw(data.Command)[0].Err
}

func TestAuth(t *testing.T) {
	n := openTemp(t)
	_, err := n.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: "root", Password: "r"})
	require.ErrorIs(t, err, auth.ErrAuthNotEnabled)
	enableAuth(n)
	nobody := context.Background()
	_, err = n.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: "bob", Password: "wrong"})
	require.ErrorIs(t, err, auth.ErrAuthFailed)
	root, bob := n.login("root", "r"), n.login("bob", "b")

	require.NoError(t, n.doAs(bob, put("a1", "x")))
	require.ErrorIs(t, n.doAs(bob, put("c1", "x")), auth.ErrPermissionDenied)
	require.ErrorIs(t, n.doAs(nobody, put("a1", "x")), auth.ErrUserEmpty)
	require.ErrorIs(t, n.doAs(withToken("nonsense.1"), put("a1", "x")), auth.ErrInvalidAuthToken)
	require.NoError(t, n.doAs(root, put("c1", "x")))

	_, err = n.Range(bob, &pb.RangeRequest{Key: []byte("a1")})
	require.NoError(t, err)
	_, err = n.Range(bob, &pb.RangeRequest{Key: []byte("c1")})
	require.ErrorIs(t, err, auth.ErrPermissionDenied)
	_, err = n.Rights().Reader(bob, []byte("c1"), nil)
	require.ErrorIs(t, err, auth.ErrPermissionDenied)
	require.NoError(t, n.Rights().RequireAdmin(root))
	require.ErrorIs(t, n.Rights().RequireAdmin(bob), auth.ErrPermissionDenied)
	require.ErrorIs(t, n.Rights().RequireAuth(nobody), auth.ErrUserEmpty)
	require.NoError(t, n.Rights().RequireAuth(bob))

	require.NoError(t,
		n.doAs(root, &pb.InternalRaftRequest{AuthUserChangePassword: &pb.AuthUserChangePasswordRequest{Name: "bob",
			Password: "bb"}}))
	n.login("bob", "bb")
	require.NoError(t, n.doAs(root, &pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}}))
	require.NoError(t, n.Rights().RequireAdmin(nobody))
}

// TestAuthLeases keeps users from leases on keys that they may not write; the store's own
// commands pass.
func TestAuthLeases(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	n := openTemp(t)
	enableAuth(n)
	root, bob := n.login("root", "r"), n.login("bob", "b")
	_, none := n.Leases().List(context.Background())
	require.ErrorIs(t, none, auth.ErrUserEmpty, "also if there are no leases")
	require.NoError(t, n.doAs(root, grant(7, 1)))
	require.NoError(t, n.doAs(root, putLease("c1", "x", 7)))
	n.raw(n.Leases().Claim())
	_, err := n.renewNow(bob, 7)
	require.ErrorIs(t, err, auth.ErrPermissionDenied)
	_, err = n.timeToLive(bob, &pb.LeaseTimeToLiveRequest{ID: 7, Keys: true})
	require.ErrorIs(t, err, auth.ErrPermissionDenied)
	_, err = n.Leases().List(bob)
	require.ErrorIs(t, err, auth.ErrPermissionDenied)
	require.ErrorIs(t, n.doAs(bob, revoke(7)), auth.ErrPermissionDenied)
	_, err = n.timeToLive(context.Background(), &pb.LeaseTimeToLiveRequest{ID: 7})
	require.ErrorIs(t, err, auth.ErrUserEmpty)

	require.NoError(t, n.raw(within(t, n.Wanted()))[0].Err)
	got, err := n.Range(root, &pb.RangeRequest{Key: []byte("c1")})
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
}

// TestSimpleTokenElsewhere uses a token on another member than the one that made it.
func TestSimpleTokenElsewhere(t *testing.T) {
	one, two := openTemp(t), openTemp(t)
	var log [][]byte
	record := func(r *pb.InternalRaftRequest) { log = append(log, one.encode(r)) }
	record(&pb.InternalRaftRequest{AuthUserAdd: &pb.AuthUserAddRequest{Name: "root", Password: "r"}})
	record(&pb.InternalRaftRequest{AuthUserGrantRole: &pb.AuthUserGrantRoleRequest{User: "root", Role: "root"}})
	record(&pb.InternalRaftRequest{AuthEnable: &pb.AuthEnableRequest{}})
	one.raw(log...)
	two.raw(log...)
	l, err := one.Rights().Login(context.Background(), &pb.AuthenticateRequest{Name: "root", Password: "r"})
	require.NoError(t, err)
	token := one.raw(l.Command)[0].Resp.(*pb.AuthenticateResponse).Token

	// The token names its position, and the member waits until it gets there.
	answer := make(chan error, 1)
	go func() { answer <- two.Rights().RequireAdmin(withToken(token)) }()
	two.raw(l.Command)
	require.NoError(t, within(t, answer))
}

// TestStrangersExtendNoLease renews a lease with users that do not have the right. It has the time that it had.
func TestStrangersExtendNoLease(t *testing.T) {
	n := openTemp(t)
	now := time.Now()
	n.lessor.now = func() time.Time { return now }
	n.must(grant(7, 100))
	n.must(putLease("c1", "x", 7))
	n.raw(n.Leases().Claim())
	left := func() time.Duration {
		left, err := n.lessor.left(7)
		require.NoError(t, err)
		return left.Truncate(time.Second)
	}
	begin := left()

	// When this one came, the member did not know that it was refused already.
	late, err := n.Leases().Renew(nil, 7)
	require.NoError(t, err)
	enableAuth(n)
	bob := n.login("bob", "b")
	now = now.Add(50 * time.Second)
	require.Equal(t, begin-50*time.Second, left(), "it holds the lease, and does not extend it")
	_, err = late.Answer(context.Background(), now)
	require.ErrorIs(t, err, auth.ErrUserEmpty)
	late.End()
	for _, who := range []context.Context{context.Background(), bob} {
		_, err := n.renewNow(who, 7)
		require.True(t, IsRefusal(err), err)
	}
	_, err = n.renewNow(withToken("nonsense.1"), 7)
	require.ErrorIs(t, err, auth.ErrInvalidAuthToken)
	_, err = n.Leases().Renew(&auth.AuthInfo{Username: "root", Revision: 1}, 7)
	require.ErrorIs(t, err, auth.ErrAuthOldRevision)
	outdated, err := n.Leases().Renew(&auth.AuthInfo{Username: "root", Revision: n.Auth().Revision()}, 7)
	require.NoError(t, err)
	require.NoError(t,
		n.doAs(n.login("root", "r"), &pb.InternalRaftRequest{AuthRoleAdd: &pb.AuthRoleAddRequest{Name: "new"}}))
	_, err = outdated.Answer(context.Background(), now)
	require.ErrorIs(t, err, auth.ErrAuthOldRevision)
	outdated.End()
	require.Equal(t, begin-50*time.Second, left())

	_, err = n.renewNow(n.login("root", "r"), 7)
	require.NoError(t, err)
	require.GreaterOrEqual(t, left(), 99*time.Second)
}

// A stream ends at the chunk before which its user lost the right, or before which authentication was turned on.
func TestStreamsEndWithTheirRights(t *testing.T) {
	n := openTemp(t)
	for i := range 3 * firstChunk {
		n.must(put(fmt.Sprintf("a%03d", i), "v"))
	}
	all := &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("b")}
	chunks := 0
	stream := func(ctx context.Context, meanwhile func()) error {
		chunks = 0
		return n.RangeStream(ctx, all, 100, func(*pb.RangeResponse) error {
			if chunks++; chunks == 1 {
				meanwhile()
			}
			return nil
		})
	}
	require.ErrorIs(t, stream(context.Background(), func() { enableAuth(n) }), auth.ErrUserEmpty)
	require.Equal(t, 1, chunks)
	root, bob := n.login("root", "r"), n.login("bob", "b")
	require.NoError(t, stream(bob, func() {}))
	require.Greater(t, chunks, 2)
	err := stream(bob, func() {
		require.NoError(t,
			n.doAs(root, &pb.InternalRaftRequest{AuthUserRevokeRole: &pb.AuthUserRevokeRoleRequest{Name: "bob", Role: "as"}}))
	})
	require.True(t, IsRefusal(err), "%v", err)
	require.Equal(t, 1, chunks)
}

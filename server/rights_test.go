package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"github.com/braidlog/braid/internal/testsize"
)

// rpc is a method as called without rights. user: a call with any user is answered.
type rpc struct {
	request proto.Message
	user    bool
}

const strangersLease = 77

// rpcs are the methods of all services except those that need no user.
func rpcs() map[string]rpc {
	key, x := []byte("x"), []string{"http://127.0.0.1:3"}
	leader := &epb.LeaderKey{Name: key, Key: key, Rev: 1, Lease: strangersLease}
	return map[string]rpc{
		"etcdserverpb.KV/Range":       {request: &pb.RangeRequest{Key: key}},
		"etcdserverpb.KV/RangeStream": {request: &pb.RangeRequest{Key: key}},
		"etcdserverpb.KV/Put":         {request: &pb.PutRequest{Key: key}},
		"etcdserverpb.KV/DeleteRange": {request: &pb.DeleteRangeRequest{Key: key}},
		"etcdserverpb.KV/Txn":         {request: &pb.TxnRequest{Success: []*pb.RequestOp{put("x", "y")}}},
		"etcdserverpb.KV/Compact":     {request: &pb.CompactionRequest{Revision: 1}},
		"etcdserverpb.Watch/Watch": {request: &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: key}}}},
		"etcdserverpb.Lease/LeaseGrant":      {request: &pb.LeaseGrantRequest{TTL: 60}, user: true},
		"etcdserverpb.Lease/LeaseRevoke":     {request: &pb.LeaseRevokeRequest{ID: strangersLease}},
		"etcdserverpb.Lease/LeaseKeepAlive":  {request: &pb.LeaseKeepAliveRequest{ID: strangersLease}},
		"etcdserverpb.Lease/LeaseTimeToLive": {request: &pb.LeaseTimeToLiveRequest{ID: strangersLease, Keys: true}},
		"etcdserverpb.Lease/LeaseLeases":     {request: &pb.LeaseLeasesRequest{}},
		"etcdserverpb.Cluster/MemberAdd":     {request: &pb.MemberAddRequest{PeerURLs: x}},
		"etcdserverpb.Cluster/MemberRemove":  {request: &pb.MemberRemoveRequest{ID: 0x10}},
		"etcdserverpb.Cluster/MemberUpdate":  {request: &pb.MemberUpdateRequest{ID: 0x10, PeerURLs: x}},
		"etcdserverpb.Cluster/MemberPromote": {request: &pb.MemberPromoteRequest{ID: 0x10}},
		"etcdserverpb.Cluster/MemberList":    {request: &pb.MemberListRequest{Linearizable: true}, user: true},
		"etcdserverpb.Maintenance/Alarm": {request: &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE,
			Alarm: pb.AlarmType_NOSPACE}},
		"etcdserverpb.Maintenance/Status":       {request: &pb.StatusRequest{}, user: true},
		"etcdserverpb.Maintenance/Defragment":   {request: &pb.DefragmentRequest{}},
		"etcdserverpb.Maintenance/Hash":         {request: &pb.HashRequest{}},
		"etcdserverpb.Maintenance/HashKV":       {request: &pb.HashKVRequest{}},
		"etcdserverpb.Maintenance/Snapshot":     {request: &pb.SnapshotRequest{}},
		"etcdserverpb.Maintenance/MoveLeader":   {request: &pb.MoveLeaderRequest{TargetID: 0x10}},
		"etcdserverpb.Maintenance/Downgrade":    {request: &pb.DowngradeRequest{}},
		"etcdserverpb.Auth/AuthEnable":          {request: &pb.AuthEnableRequest{}},
		"etcdserverpb.Auth/AuthDisable":         {request: &pb.AuthDisableRequest{}},
		"etcdserverpb.Auth/UserAdd":             {request: &pb.AuthUserAddRequest{Name: "u", Password: "p"}},
		"etcdserverpb.Auth/UserGet":             {request: &pb.AuthUserGetRequest{Name: "root"}},
		"etcdserverpb.Auth/UserList":            {request: &pb.AuthUserListRequest{}},
		"etcdserverpb.Auth/UserDelete":          {request: &pb.AuthUserDeleteRequest{Name: "root"}},
		"etcdserverpb.Auth/UserChangePassword":  {request: &pb.AuthUserChangePasswordRequest{Name: "root", Password: "p"}},
		"etcdserverpb.Auth/UserGrantRole":       {request: &pb.AuthUserGrantRoleRequest{User: "reader", Role: "root"}},
		"etcdserverpb.Auth/UserRevokeRole":      {request: &pb.AuthUserRevokeRoleRequest{Name: "root", Role: "root"}},
		"etcdserverpb.Auth/RoleAdd":             {request: &pb.AuthRoleAddRequest{Name: "r"}},
		"etcdserverpb.Auth/RoleGet":             {request: &pb.AuthRoleGetRequest{Role: "root"}},
		"etcdserverpb.Auth/RoleList":            {request: &pb.AuthRoleListRequest{}},
		"etcdserverpb.Auth/RoleDelete":          {request: &pb.AuthRoleDeleteRequest{Role: "read"}},
		"etcdserverpb.Auth/RoleGrantPermission": {request: &pb.AuthRoleGrantPermissionRequest{Name: "read"}},
		"etcdserverpb.Auth/RoleRevokePermission": {request: &pb.AuthRoleRevokePermissionRequest{Role: "read",
			Key: []byte("r")}},
		"v3lockpb.Lock/Lock":               {request: &lpb.LockRequest{Name: key, Lease: strangersLease}},
		"v3lockpb.Lock/Unlock":             {request: &lpb.UnlockRequest{Key: key}},
		"v3electionpb.Election/Campaign":   {request: &epb.CampaignRequest{Name: key, Lease: strangersLease}},
		"v3electionpb.Election/Proclaim":   {request: &epb.ProclaimRequest{Leader: leader}},
		"v3electionpb.Election/Leader":     {request: &epb.LeaderRequest{Name: key}},
		"v3electionpb.Election/Observe":    {request: &epb.LeaderRequest{Name: key}},
		"v3electionpb.Election/Resign":     {request: &epb.ResignRequest{Leader: leader}},
		putService + "/" + putsMethod:      {request: putsRequest("r", "v")},
		adminService + "/" + reshapeMethod: {request: wrapperspb.UInt32(2)},
		adminService + "/" + tuneMethod:    {request: new(structpb.Struct)},
		adminService + "/" + switchMethod:  {request: new(structpb.Struct)},
		adminService + "/" + planMethod:    {request: new(structpb.Struct)},
		adminService + "/" + replaceMethod: {request: new(structpb.Struct)},
		adminService + "/" + backupMethod:  {request: wrapperspb.Bytes([]byte("{}"))},
		adminService + "/" + drainMethod:   {request: new(structpb.Struct)},
		adminService + "/" + adviseMethod:  {request: new(emptypb.Empty)},
		adminService + "/" + quotasMethod:  {request: new(emptypb.Empty)},
		adminService + "/" + setQuotaMethod: {request: &structpb.Struct{Fields: map[string]*structpb.Value{
			"prefix": structpb.NewStringValue("a"), "keys": structpb.NewNumberValue(1)}}},
		adminService + "/" + zonesMethod: {request: &structpb.Struct{Fields: map[string]*structpb.Value{
			"one": structpb.NewStringValue("a")}}},
	}
}

// forAnybody are the methods that need no user: they let a client log in, or return nothing about the cluster.
var forAnybody = []string{
	"etcdserverpb.Auth/AuthStatus", "etcdserverpb.Auth/Authenticate",
	"grpc.health.v1.Health/Check", "grpc.health.v1.Health/List", "grpc.health.v1.Health/Watch",
	"grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}

// callAs calls a method with a token and returns how it was refused; nil if it was answered.
func (f *fixture) callAs(ctx context.Context, token, method string, request proto.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
	}
	// The fields that an answer and a refusal of a watch have in common.
	answer := new(pb.WatchResponse)
	stream, err := f.client.ActiveConnection().NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/"+method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil && err != io.EOF {
		return err
	}
	if method != "etcdserverpb.Watch/Watch" {
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return stream.RecvMsg(&rawMessage{})
	}
	if err := stream.RecvMsg(answer); err != nil || !answer.Canceled {
		return err
	}
	return status.Error(codes.PermissionDenied, answer.CancelReason)
}

// rawMessage accepts any answer.
type rawMessage struct{ wrapperspb.BytesValue }

func TestEveryMethodAsksForRightsFirst(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	root, _ := f.enableAuth(t, ctx)
	_, err := root.UserAdd(ctx, "gone", "away")
	require.NoError(t, err)
	login := func(name, password string) string {
		resp, err := f.client.Authenticate(ctx, name, password)
		require.NoError(t, err)
		return resp.Token
	}
	stale, reader := login("gone", "away"), login("reader", "book")
	_, err = root.UserDelete(ctx, "gone")
	require.NoError(t, err)
	_, err = pb.NewLeaseClient(root.ActiveConnection()).LeaseGrant(withLogin(ctx, login("root", "secret")),
		&pb.LeaseGrantRequest{ID: strangersLease, TTL: 600})
	require.NoError(t, err)
	_, err = pb.NewKVClient(root.ActiveConnection()).Put(withLogin(ctx, login("root", "secret")),
		&pb.PutRequest{Key: []byte("x"), Lease: strangersLease})
	require.NoError(t, err)

	known := rpcs()
	names := slices.Concat(slices.Collect(maps.Keys(known)), forAnybody)
	var served []string
	for service, info := range f.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			served = append(served, service+"/"+m.Name)
		}
	}
	require.ElementsMatch(t, names, served, "each method says here who may call it")

	eventually(t, "the primary", f.store.Leases().IsPrimary)
	f.fake.set(func(l *fakeLog) { l.reads = true })
	f.fake.mu.Lock()
	before := f.fake.position
	f.fake.mu.Unlock()
	for _, method := range slices.Sorted(maps.Keys(known)) {
		call := known[method]
		for who, token := range map[string]string{"nobody": "", "stale": stale, "made up": "abcdefghijklmnop.3",
			"reader": reader} {
			if who == "reader" && call.user {
				continue
			}
			err := f.callAs(ctx, token, method, call.request)
			if method == "v3electionpb.Election/Observe" {
				require.ErrorIs(t, err, io.EOF, "it ends without an answer, as etcd's does")
				continue
			}
			require.Contains(t, []codes.Code{codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument,
				codes.Unknown}, status.Code(err), "%s by %s: %v", method, who, err)
			require.Regexp(t, "user name is empty|permission denied|invalid auth token", fmt.Sprint(err), "%s by %s", method,
				who)
		}
	}
	f.fake.mu.Lock()
	defer f.fake.mu.Unlock()
	require.Equal(t, before, f.fake.position, "nothing was proposed")
	require.Zero(t, f.fake.transferred)
	require.Zero(t, f.fake.instances)
	require.Len(t, f.fake.members, 1)
}

func withLogin(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
}

// A lease ends although strangers send keep-alives for it all the time.
func TestStrangersKeepNoLeaseAlive(t *testing.T) {
	testsize.Long(t)
	t.Parallel() // it waits for a clock
	f := start(t)
	ctx := testContext(t)
	root, reader := f.enableAuth(t, ctx)
	granted, err := root.Grant(ctx, 1)
	require.NoError(t, err)
	_, err = root.Put(ctx, "x", "v", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	eventually(t, "the lease to end", func() bool {
		_, err := f.client.KeepAliveOnce(ctx, granted.ID)
		require.ErrorIs(t, err, rpctypes.ErrUserEmpty)
		if _, err = reader.KeepAliveOnce(ctx, granted.ID); err != nil {
			require.ErrorContains(t, err, "e") // refused, or gone
		}
		left, err := root.TimeToLive(ctx, granted.ID)
		return err == nil && left.TTL == -1
	})
}

// A member that lags behind AuthEnable serves no administrator without a user.
func TestRightsAreAskedBehindTheBarrier(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	root, _ := f.enableAuth(t, ctx)
	enable, err := f.store.Encode(f.store.Auth().WithRoot(ctx),
		&pb.InternalRaftRequest{AuthEnable: &pb.AuthEnableRequest{}})
	require.NoError(t, err)
	known := rpcs()
	for _, method := range []string{
		"etcdserverpb.KV/Compact", "etcdserverpb.Cluster/MemberAdd", "etcdserverpb.Cluster/MemberRemove",
		"etcdserverpb.Cluster/MemberUpdate",
		"etcdserverpb.Cluster/MemberPromote", "etcdserverpb.Maintenance/Alarm", "etcdserverpb.Maintenance/Defragment",
		"etcdserverpb.Maintenance/Hash", "etcdserverpb.Maintenance/HashKV", "etcdserverpb.Maintenance/Snapshot",
		"etcdserverpb.Maintenance/MoveLeader", "etcdserverpb.Maintenance/Downgrade", adminService + "/" + reshapeMethod,
		adminService + "/" + zonesMethod,
	} {
		_, err := root.AuthDisable(ctx)
		require.NoError(t, err)
		f.fake.set(func(l *fakeLog) { l.behind, l.reads = enable.Command, true })
		err = f.callAs(ctx, "", method, known[method].request)
		require.ErrorContains(t, err, "user name is empty", method)
	}
	f.fake.mu.Lock()
	defer f.fake.mu.Unlock()
	require.Len(t, f.fake.members, 1)
	require.EqualValues(t, -1, f.store.CompactRevision())
	require.Zero(t, f.fake.transferred)
	require.Zero(t, f.fake.instances)
}

// A refusal of a member that lags behind AuthDisable does not count.
func TestAnOldStateRefusesNoUser(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	f.enableAuth(t, ctx)
	disable, err := f.store.Encode(f.store.Auth().WithRoot(ctx),
		&pb.InternalRaftRequest{AuthDisable: &pb.AuthDisableRequest{}})
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.behind = disable.Command })
	_, err = f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
}

// Without a quorum the rights are those that the member knows, for what it alone does.
func TestSnapshotOfTheLastMember(t *testing.T) {
	f := start(t, func(c *Config) { c.RequestTimeout = 100e6 })
	ctx := testContext(t)
	f.fake.set(func(l *fakeLog) { l.leader, l.barrier = 0, context.DeadlineExceeded })
	eventually(t, "no leader", func() bool { return !f.self.Load().led })
	known := rpcs()
	for _, method := range []string{"etcdserverpb.Maintenance/Snapshot", "etcdserverpb.Maintenance/HashKV",
		"etcdserverpb.Maintenance/Defragment"} {
		require.NoError(t, f.callAs(ctx, "", method, known[method].request), method)
	}
	require.Error(t, f.callAs(ctx, "", "etcdserverpb.KV/Compact", known["etcdserverpb.KV/Compact"].request))
}

// A watch ends before the first event that is written after its user lost the right, or after authentication
// was turned on without it having a user.
func TestWatchesEndWithTheirRights(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	early := f.client.Watch(ctx, "r", clientv3.WithCreatedNotify())
	require.NoError(t, errOf(<-early))
	root, reader := f.enableAuth(t, ctx)
	lasting := root.Watch(ctx, "r", clientv3.WithCreatedNotify())
	require.NoError(t, errOf(<-lasting))
	revoked := reader.Watch(ctx, "r", clientv3.WithCreatedNotify())
	require.NoError(t, errOf(<-revoked))

	require.NoError(t, second(root.Put(ctx, "r", "1")))
	requireEnds(t, early)
	require.Len(t, (<-revoked).Events, 1)
	require.NoError(t, second(root.UserAdd(ctx, "other", "x")))
	require.NoError(t, second(root.Put(ctx, "r", "2")))
	require.Len(t, (<-revoked).Events, 1, "another user is not its business")
	require.NoError(t, second(root.UserRevokeRole(ctx, "reader", "read")))
	require.NoError(t, second(root.Put(ctx, "r", "3")))
	requireEnds(t, revoked)
	for range 3 {
		require.Len(t, (<-lasting).Events, 1)
	}
}

func errOf(resp clientv3.WatchResponse) error { return resp.Err() }

// requireEnds demands that a watch ends. Clients of etcd do not return the reason.
func requireEnds(t *testing.T, events clientv3.WatchChan) {
	resp, more := <-events
	require.False(t, more, "%v", resp.Events)
}

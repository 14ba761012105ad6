package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-semver/semver"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestStatus(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	st, err := f.client.Status(ctx, f.addr)
	require.NoError(t, err)
	v, err := semver.NewVersion(st.Version)
	require.NoError(t, err)
	require.False(t, v.LessThan(*semver.New("3.5.13")))
	require.EqualValues(t, 0x10, st.Leader)
	require.EqualValues(t, 2, st.RaftTerm)
	require.Positive(t, st.DbSize)
	require.Positive(t, st.DbSizeInUse)
	require.Positive(t, st.DbSizeQuota)
	require.GreaterOrEqual(t, st.RaftIndex, st.RaftAppliedIndex)
	require.Positive(t, st.RaftAppliedIndex)
	require.Empty(t, st.Errors)
	f.fake.set(func(l *fakeLog) { l.leader = 0 })
	eventually(t, "an error in the status", func() bool {
		st, err := f.client.Status(ctx, f.addr)
		return err == nil && len(st.Errors) == 1 && st.Errors[0] == "etcdserver: no leader"
	})
}

func TestHashes(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	m := pb.NewMaintenanceClient(f.client.ActiveConnection())
	whole, err := m.Hash(ctx, &pb.HashRequest{})
	require.NoError(t, err)
	require.NotZero(t, whole.Hash)
	before, err := f.client.HashKV(ctx, f.addr, 0)
	require.NoError(t, err)
	_, err = f.client.Put(ctx, "k", "w")
	require.NoError(t, err)
	after, err := f.client.HashKV(ctx, f.addr, 2)
	require.NoError(t, err)
	require.Equal(t, before.Hash, after.Hash, "the hash at a revision does not change")
	require.EqualValues(t, 2, after.HashRevision)
	_, err = f.client.HashKV(ctx, f.addr, 50)
	require.ErrorIs(t, err, rpctypes.ErrFutureRev)
}

// TestSnapshotThatNobodyReads holds nothing up: its stream ends, and the database is free to be
// defragmented.
func TestSnapshotThatNobodyReads(t *testing.T) {
	f := start(t, func(c *Config) { c.SnapshotStallTimeout = 100 * time.Millisecond })
	ctx := testContext(t)
	for i := range 200 {
		_, err := f.client.Put(ctx, fmt.Sprint("key", i), string(make([]byte, 50<<10)))
		require.NoError(t, err)
	}
	maintenance := pb.NewMaintenanceClient(f.client.ActiveConnection())
	stream, err := maintenance.Snapshot(ctx, &pb.SnapshotRequest{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	_, err = f.client.Defragment(ctx, f.addr)
	require.NoError(t, err)
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
}

func TestSnapshot(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", string(make([]byte, 300<<10)))
	require.NoError(t, err)
	r, err := f.client.SnapshotWithVersion(ctx)
	require.NoError(t, err)
	data, err := io.ReadAll(r.Snapshot)
	require.NoError(t, err)
	require.Equal(t, "3.7.0", r.Version)
	require.Equal(t, sha256.Size, len(data)%512, "a database of whole pages and its digest")
	db, digest := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	sum := sha256.Sum256(db)
	require.True(t, bytes.Equal(sum[:], digest))
}

func TestAlarms(t *testing.T) {
	f := start(t, func(c *Config) { c.Store.QuotaBytes = 1 << 20 })
	ctx := testContext(t)
	eventually(t, "the quota to be reached", func() bool {
		_, err := f.client.Put(ctx, "k", string(make([]byte, 100<<10)))
		if err != nil {
			require.ErrorIs(t, err, rpctypes.ErrNoSpace)
		}
		return err != nil
	})
	eventually(t, "the alarm", func() bool {
		list, err := f.client.AlarmList(ctx)
		return err == nil && len(list.Alarms) == 1 && list.Alarms[0].Alarm == pb.AlarmType_NOSPACE
	})
	_, err := f.client.Put(ctx, "small", "")
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	_, err = f.client.Delete(ctx, "", withAll()...)
	require.NoError(t, err, "deleting is how space is made")
	_, err = f.client.Compact(ctx, f.store.Revision(), clientv3.WithCompactPhysical()) // before it is defragmented
	require.NoError(t, err)
	_, err = f.client.Defragment(ctx, f.addr)
	require.NoError(t, err)
	list, err := f.client.AlarmList(ctx)
	require.NoError(t, err)
	_, err = f.client.AlarmDisarm(ctx, (*clientAlarm)(list.Alarms[0]))
	require.NoError(t, err)
	_, err = f.client.Put(ctx, "small", "")
	require.NoError(t, err)
	_, err = pb.NewMaintenanceClient(f.client.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{Action: 9})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestMoveLeader(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	_, err := f.client.MoveLeader(ctx, 0x99)
	require.ErrorIs(t, err, rpctypes.ErrBadLeaderTransferee)
	_, err = f.client.MoveLeader(ctx, 0x10)
	require.NoError(t, err)
	require.EqualValues(t, 0x10, f.fake.transferred)
	f.fake.set(func(l *fakeLog) { l.leader = 0x20 })
	eventually(t, "the change", func() bool { return !f.self.Load().isLeader() })
	_, err = f.client.MoveLeader(ctx, 0x10)
	require.ErrorIs(t, err, rpctypes.ErrNotLeader)
}

// TestDowngrade: the answers are those of etcd without a downgrade in progress, and no version is a target.
func TestDowngrade(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	for _, action := range []clientv3.DowngradeAction{clientv3.DowngradeValidate, clientv3.DowngradeEnable} {
		for _, target := range []string{"3.6", "3.6.0", "3.5", "3.7", "4.0"} {
			_, err := f.client.Downgrade(ctx, action, target)
			require.ErrorIs(t, err, rpctypes.ErrInvalidDowngradeTargetVersion, target)
		}
		for _, target := range []string{"", "3", "three", "3.6.0.0"} {
			_, err := f.client.Downgrade(ctx, action, target)
			require.ErrorIs(t, err, rpctypes.ErrWrongDowngradeVersionFormat, target)
		}
	}
	resp, err := f.client.Downgrade(ctx, clientv3.DowngradeCancel, "")
	require.NoError(t, err)
	require.Equal(t, version.Cluster(version.Version), resp.Version)
	require.NotNil(t, resp.Header)
	_, err = pb.NewMaintenanceClient(f.client.ActiveConnection()).Downgrade(ctx, &pb.DowngradeRequest{Action: 9})
	require.ErrorContains(t, err, "etcdserver: unknown method")
}

func TestHealthAndReflection(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	h, err := healthpb.NewHealthClient(f.client.ActiveConnection()).Check(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, h.Status)
	r, err := reflectionpb.NewServerReflectionClient(f.client.ActiveConnection()).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	require.NoError(t,
		r.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}))
	list, err := r.Recv()
	require.NoError(t, err)
	var names []string
	for _, s := range list.GetListServicesResponse().Service {
		names = append(names, s.Name)
	}
	require.Contains(t, names, "etcdserverpb.KV")
	require.Contains(t, names, "v3lockpb.Lock")
}

// makeHoles makes more than 1 MiB of the database free.
func (f *fixture) makeHoles(t *testing.T, ctx context.Context) {
	for i := range 200 {
		_, err := f.client.Put(ctx, fmt.Sprint(i), strings.Repeat("v", 10_000))
		require.NoError(t, err)
	}
	all, err := f.client.Delete(ctx, "", clientv3.WithFromKey())
	require.NoError(t, err)
	_, err = f.client.Compact(ctx, all.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	eventually(t, "free pages", func() bool {
		_, err := f.client.Put(ctx, "k", "v") // the pages become free with a later commit
		require.NoError(t, err)
		return f.store.DBSize()-f.store.DBSizeInUse() > 1<<20
	})
}

// TestStartDefragments: only if that frees enough.
func TestStartDefragments(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	f.makeHoles(t, ctx)
	before := f.store.DBSize()
	for _, least := range []int64{0, 1 << 30} {
		f.cfg.DefragmentBytes = least
		f.defragment(ctx)
		require.Equal(t, before, f.store.DBSize())
	}
	f.cfg.DefragmentBytes = 1 << 20
	f.defragment(ctx)
	require.Less(t, f.store.DBSize(), before-1<<20)
}

// A defragmentation whose client has left is completed, also if it has to wait for a snapshot.
func TestDefragmentIsCompletedWithoutItsClient(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	f.makeHoles(t, ctx)
	before := f.store.DBSize()
	snapshot, err := f.store.Snapshot()
	require.NoError(t, err)
	release := sync.OnceValue(snapshot.Close) // the store waits for it when it is closed
	defer release()
	brief, cancel := context.WithTimeout(ctx, time.Second) // the call reaches the server, also on a busy machine
	defer cancel()
	require.Error(t, second(f.client.Defragment(brief, f.addr)))
	require.GreaterOrEqual(t, f.store.DBSize(), before)
	require.NoError(t, release())
	eventually(t, "a smaller database", func() bool { return f.store.DBSize() < before-1<<20 })
}

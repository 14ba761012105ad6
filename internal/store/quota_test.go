package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

func disarm(member uint64) *pb.InternalRaftRequest {
	return &pb.InternalRaftRequest{Alarm: &pb.AlarmRequest{
		Action: pb.AlarmRequest_DEACTIVATE, MemberID: member, Alarm: pb.AlarmType_NOSPACE}}
}

func TestQuota(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"quota": func(o *Options) { o.QuotaBytes = 1 },
		"disk":  func(o *Options) { o.ReserveBytes = 1 << 60 },
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t.TempDir())
			limit(&o)
			n := open(t, o)
			defer n.Close()
			require.ErrorIs(t, n.CheckQuota(put("a", "1")), etcderrors.ErrNoSpace)
			require.ErrorIs(t, n.CheckQuota(grant(1, 1)), etcderrors.ErrNoSpace)
			require.NoError(t, n.CheckQuota(del("a", "")))
			readOnly := &pb.TxnRequest{
				Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}}}}
			require.NoError(t, n.CheckQuota(&pb.InternalRaftRequest{Txn: readOnly}))

			n.raw(within(t, n.Wanted())) // the alarm
			require.Len(t, n.Alarms(), 1)
			require.ErrorIs(t, n.do(put("a", "1")).Err, etcderrors.ErrNoSpace)
			require.Equal(t, "", n.get("a"))
			n.must(del("a", ""))
			n.must(disarm(o.MemberID))
			require.Empty(t, n.Alarms())
		})
	}
}

// TestQuotaAtApply lets a put through that was ordered before the alarm: it is applied, on
// every member, and the one that has no space raises its alarm.
func TestQuotaAtApply(t *testing.T) {
	o := testOptions(t.TempDir())
	o.QuotaBytes = 1
	n := open(t, o)
	defer n.Close()
	require.ErrorIs(t, n.do(put("a", "1")).Err, etcderrors.ErrNoSpace)
	require.Equal(t, "1", n.get("a"))
	n.raw(within(t, n.Wanted()))
	require.Len(t, n.Alarms(), 1)
}

func TestNoQuota(t *testing.T) {
	o := testOptions(t.TempDir())
	o.QuotaBytes, o.ReserveBytes = -1, -1
	n := open(t, o)
	defer n.Close()
	require.NoError(t, n.CheckQuota(put("a", "1")))
	n.must(put("a", "1"))
}

package same

import (
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func (g *generator) hashKV() *request {
	return unary[pb.HashKVResponse](pb.Maintenance_HashKV_FullMethodName,
		&pb.HashKVRequest{Revision: oneOf(g, 0, 0, g.revision, max(1, g.revision-5), g.revision+7, -1, math.MaxInt64)})
}

func (g *generator) alarm() *request {
	r := &pb.AlarmRequest{Action: pb.AlarmRequest_GET}
	if g.yes(0.3) {
		r.Alarm = oneOf(g, pb.AlarmType_NOSPACE, pb.AlarmType_CORRUPT)
	}
	return unary[pb.AlarmResponse](pb.Maintenance_Alarm_FullMethodName, r)
}

func (g *generator) defragment() *request {
	return unary[pb.DefragmentResponse](pb.Maintenance_Defragment_FullMethodName, &pb.DefragmentRequest{})
}

// downgrade draws a request that is refused, or cancels no downgrade.
func (g *generator) downgrade() *request {
	return unary[pb.DowngradeResponse](pb.Maintenance_Downgrade_FullMethodName, &pb.DowngradeRequest{
		Action: pb.DowngradeRequest_DowngradeAction(g.IntN(4)), Version: oneOf(g, "3.7", "3.5.0", "4.0", "", "three"),
	})
}

// members draws a change of the membership that is refused, or a question.
func (g *generator) members() *request {
	switch g.IntN(5) {
	case 0:
		return unary[pb.MemberListResponse](pb.Cluster_MemberList_FullMethodName,
			&pb.MemberListRequest{Linearizable: g.yes(0.5)})
	case 1:
		return unary[pb.MemberRemoveResponse](pb.Cluster_MemberRemove_FullMethodName,
			&pb.MemberRemoveRequest{ID: 12345})
	case 2:
		return unary[pb.MemberPromoteResponse](pb.Cluster_MemberPromote_FullMethodName,
			&pb.MemberPromoteRequest{ID: 12345})
	case 3:
		return unary[pb.MemberUpdateResponse](pb.Cluster_MemberUpdate_FullMethodName,
			&pb.MemberUpdateRequest{ID: 12345, PeerURLs: []string{oneOf(g, "http://10.0.0.1:1", "10.0.0.1:1", "",
				"http://x/path")}})
	}
	return unary[pb.MoveLeaderResponse](pb.Maintenance_MoveLeader_FullMethodName,
		&pb.MoveLeaderRequest{TargetID: 12345})
}

package same

import (
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// ending is the first id of leases that end within the test.
const ending = 1 << 20

// grant draws a lease that does not end within the test, or one that is refused.
func (g *generator) grant() *request {
	r := &pb.LeaseGrantRequest{ID: g.lease(), TTL: int64(10_000 + g.IntN(100_000))}
	switch {
	case g.yes(0.1):
		r.TTL = oneOf[int64](g, 9_000_000_000, 9_000_000_001, 5_000_000_000, math.MaxInt64)
	case g.yes(0.1): // nothing asks for one that ends meanwhile
		r.ID, r.TTL = ending+g.Int64N(1<<40), oneOf[int64](g, 0, -1, 1, math.MinInt64)
	}
	return unary[pb.LeaseGrantResponse](pb.Lease_LeaseGrant_FullMethodName, r)
}

func (g *generator) revoke() *request {
	return unary[pb.LeaseRevokeResponse](pb.Lease_LeaseRevoke_FullMethodName, &pb.LeaseRevokeRequest{ID: g.lease()})
}

func (g *generator) timeToLive() *request {
	return unary[pb.LeaseTimeToLiveResponse](pb.Lease_LeaseTimeToLive_FullMethodName,
		&pb.LeaseTimeToLiveRequest{ID: g.lease(), Keys: g.yes(0.7)})
}

func (g *generator) leases() *request {
	return unary[pb.LeaseLeasesResponse](pb.Lease_LeaseLeases_FullMethodName, &pb.LeaseLeasesRequest{})
}

package store

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/lease"
)

// A plain grant is the grant of a lease without a user. As of plain puts, etcd's appliers change nothing of it while
// nothing can refuse it.

// Numbers of fields of etcd's requests.
const (
	fieldGrant    protowire.Number = 8 // of InternalRaftRequest
	fieldGrantTTL protowire.Number = 1 // of LeaseGrantRequest
	fieldGrantID  protowire.Number = 2
)

// plainGranted is the result of a plain grant, in one allocation.
type plainGranted struct {
	result Result
	resp   pb.LeaseGrantResponse
	header pb.ResponseHeader
}

// anyGrant is the grant whose space is asked for: they all need the same.
var anyGrant = new(pb.LeaseGrantRequest)

// applyPlainGrant applies a command that is a plain grant; nil: it is not, or it is refused, which etcd's appliers do.
func (s *Store) applyPlainGrant(c *Command) *Result {
	id, ttl, ok := parsePlainGrant(c.Data)
	if !ok || c.Body != nil || !s.admits(anyGrant) {
		return nil
	}
	began := time.Now()
	granted, err := s.lessor.Grant(id, ttl)
	if err != nil {
		return nil
	}
	a := new(plainGranted)
	a.header.ClusterId, a.header.MemberId, a.header.Revision = s.opts.ClusterID, s.opts.MemberID, s.kv.newest()
	a.resp.Header, a.resp.ID, a.resp.TTL = &a.header, int64(granted.ID), granted.TTL()
	a.result.Resp, a.result.replaced = &a.resp, s.replaced
	txn.ApplySecObserve("v3", "LeaseGrant", true, time.Since(began))
	s.warnOfSlow(began, &a.resp, func() *pb.InternalRaftRequest {
		return &pb.InternalRaftRequest{LeaseGrant: &pb.LeaseGrantRequest{TTL: ttl, ID: int64(id)}}
	})
	return &a.result
}

// parsePlainGrant returns id and time to live of a command that is a plain grant.
func parsePlainGrant(data []byte) (id lease.LeaseID, ttl int64, ok bool) {
	grant := onlyField(data, fieldGrant)
	seconds, rest := numberField(grant, fieldGrantTTL)
	number, rest := numberField(rest, fieldGrantID)
	return lease.LeaseID(number), int64(seconds), grant != nil && len(rest) == 0
}

package same

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// normalize takes out of a response what is of one cluster.
func normalize(m proto.Message) {
	if r, ok := m.(interface{ GetHeader() *pb.ResponseHeader }); ok && r.GetHeader() != nil {
		h := r.GetHeader()
		h.ClusterId, h.MemberId, h.RaftTerm = 0, 0, 0
	}
	switch r := m.(type) {
	case *pb.AuthenticateResponse:
		r.Token = ""
	case *pb.LeaseTimeToLiveResponse:
		if r.TTL > 0 && r.TTL >= r.GrantedTTL-slack {
			r.TTL = r.GrantedTTL
		}
		slices.SortFunc(r.Keys, slices.Compare)
	case *pb.LeaseLeasesResponse:
		r.Leases = slices.DeleteFunc(r.Leases, func(l *pb.LeaseStatus) bool {
			return l.ID >= ending && l.ID < math.MaxInt64
		})
		slices.SortFunc(r.Leases, func(a, b *pb.LeaseStatus) int { return cmp.Compare(a.ID, b.ID) })
	case *pb.AlarmResponse:
		for _, a := range r.Alarms {
			a.MemberID = 0
		}
	case *pb.TxnResponse:
		for _, op := range r.Responses {
			normalizeOp(op)
		}
	case *pb.DowngradeResponse:
		r.Version = "" // etcd's is 3.0 until its leader has asked all members for theirs
	case *pb.MemberListResponse:
		r.Members = nil
	}
}

// slack is how many seconds of a lease may have passed.
const slack = 600

func normalizeOp(op *pb.ResponseOp) {
	switch r := op.Response.(type) {
	case *pb.ResponseOp_ResponseRange:
		normalize(r.ResponseRange)
	case *pb.ResponseOp_ResponsePut:
		normalize(r.ResponsePut)
	case *pb.ResponseOp_ResponseDeleteRange:
		normalize(r.ResponseDeleteRange)
	case *pb.ResponseOp_ResponseTxn:
		normalize(r.ResponseTxn)
	}
}

// keepToken remembers the token of a user that has authenticated.
func (s *side) keepToken(r *request, response proto.Message) {
	if a, ok := response.(*pb.AuthenticateResponse); ok && a.Token != "" {
		s.tokens[r.message.(*pb.AuthenticateRequest).Name] = a.Token
	}
}

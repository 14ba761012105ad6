package same

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// purpose is a difference that is meant (docs/internals/divergence.md, "Answers that are not etcd's").
type purpose func(p *pair, r *request, etcd, braid answer) bool

var purposes = []purpose{strangersTransaction, invalidURLs, largeValues}

// mayDiffer reports whether two answers differ on purpose.
func (p *pair) mayDiffer(r *request, got [2]answer) bool {
	return slices.ContainsFunc(purposes, func(may purpose) bool { return may(p, r, got[0], got[1]) })
}

// strangersTransaction: while authentication is on, braid checks the user of a transaction before it looks at it. etcd
// says first what is wrong with it, and orders it for a client without a user if it touches no key.
func strangersTransaction(_ *pair, r *request, etcd, braid answer) bool {
	_, ok := r.message.(*pb.TxnRequest)
	refused := status.Code(rpctypes.ErrGRPCInvalidAuthToken).String() == braid.code ||
		status.Convert(rpctypes.ErrGRPCUserEmpty).Message() == braid.text ||
		status.Convert(rpctypes.ErrGRPCAuthOldRevision).Message() == braid.text
	return ok && refused && (etcd.code == "OK" || etcd.code == codes.InvalidArgument.String())
}

// invalidURLs: etcd takes any text for the peer URLs of a member that is updated.
func invalidURLs(_ *pair, r *request, etcd, braid answer) bool {
	_, ok := r.message.(*pb.MemberUpdateRequest)
	return ok && etcd.code == "OK" && braid.text == "etcdserver: given member URLs are invalid"
}

// largeValues: braid hashes the digests of large values.
func largeValues(p *pair, r *request, etcd, braid answer) bool {
	_, ok := r.message.(*pb.HashKVRequest)
	return ok && p.large && etcd.code == "OK" && braid.code == "OK"
}

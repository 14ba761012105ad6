package same

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// purpose is a difference that is meant (docs/internals/divergence.md, "Answers that are not etcd's").
type purpose func(p *pair, r *request, etcd, braid answer) bool

var purposes = []purpose{strangersTransaction, largeValues}

// mayDiffer reports whether two answers differ on purpose.
func (p *pair) mayDiffer(r *request, got [2]answer) bool {
	return slices.ContainsFunc(purposes, func(may purpose) bool { return may(p, r, got[0], got[1]) })
}

// strangersTransaction: while authentication is on, braid checks the user of a transaction before it looks at it. etcd
// says first what is wrong with it, and orders it for a client without a user if it touches no key.
func strangersTransaction(_ *pair, r *request, etcd, braid answer) bool {
	txn, ok := r.message.(*pb.TxnRequest)
	if !ok {
		return false
	}
	refused := braid.code == codes.Unauthenticated.String() && r.as != root ||
		r.as == "" && braid.text == status.Convert(rpctypes.ErrGRPCUserEmpty).Message()
	ordered := etcd.code == "OK" && r.as == "" && !touches(txn)
	return refused && (ordered || etcd.code == codes.InvalidArgument.String())
}

// touches reports whether a transaction names a key.
func touches(r *pb.TxnRequest) bool {
	return len(r.Compare) > 0 || slices.ContainsFunc(slices.Concat(r.Success, r.Failure), func(op *pb.RequestOp) bool {
		nested := op.GetRequestTxn()
		return nested == nil || touches(nested)
	})
}

// largeValues: braid hashes the digests of large values.
func largeValues(p *pair, _ *request, etcd, braid answer) bool {
	left, ok := etcd.response.(*pb.HashKVResponse)
	if !ok || !p.large || etcd.code != "OK" || braid.code != "OK" {
		return false
	}
	right := proto.CloneOf(braid.response.(*pb.HashKVResponse))
	right.Hash = left.Hash
	return proto.Equal(left, right)
}

package store

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// eachTxn calls yield with a transaction and with those nested in it, the outer ones first, until it returns an error.
func eachTxn(t *pb.TxnRequest, yield func(*pb.TxnRequest) error) error {
	if err := yield(t); err != nil {
		return err
	}
	for _, ops := range [][]*pb.RequestOp{t.Success, t.Failure} {
		for _, op := range ops {
			inner := op.GetRequestTxn()
			if inner == nil {
				continue
			}
			if err := eachTxn(inner, yield); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewriter replaces the parts of a transaction.
type rewriter interface {
	compare(*pb.Compare) (*pb.Compare, error)
	op(*pb.RequestOp) *pb.RequestOp // one that is no transaction
}

// rewriteTxn is a transaction with its parts, and those of the ones nested in it, replaced. t itself is left as it is.
func rewriteTxn(t *pb.TxnRequest, w rewriter) (out *pb.TxnRequest, err error) {
	out = &pb.TxnRequest{Compare: make([]*pb.Compare, len(t.Compare))}
	for i, c := range t.Compare {
		if out.Compare[i], err = w.compare(c); err != nil {
			return nil, err
		}
	}
	if out.Success, err = rewriteOps(t.Success, w); err == nil {
		out.Failure, err = rewriteOps(t.Failure, w)
	}
	return out, err
}

func rewriteOps(ops []*pb.RequestOp, w rewriter) ([]*pb.RequestOp, error) {
	out := make([]*pb.RequestOp, len(ops))
	for i, op := range ops {
		inner := op.GetRequestTxn()
		if inner == nil {
			out[i] = w.op(op)
			continue
		}
		t, err := rewriteTxn(inner, w)
		if err != nil {
			return nil, err
		}
		out[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: t}}
	}
	return out, nil
}

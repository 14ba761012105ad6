package same

import (
	"bytes"
	"fmt"
	"math"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// key draws one of few keys, so that requests meet; now and then an odd one.
func (g *generator) key() []byte {
	switch {
	case g.yes(0.02):
		return oneOf(g, nil, []byte{0}, []byte{0, 0}, []byte{0xff}, []byte{0xff, 0xff},
			bytes.Repeat([]byte("long"), 300))
	case g.yes(0.3):
		return fmt.Appendf(nil, "%c%c", 'a'+g.IntN(4), 'a'+g.IntN(4))
	}
	return []byte{byte('a' + g.IntN(6))}
}

// end draws the end of a range.
func (g *generator) end() []byte {
	if g.yes(0.5) {
		return nil
	}
	return oneOf(g, []byte{0}, g.key(), []byte("c"), []byte("z"), []byte{0xff, 0xff, 0xff})
}

func (g *generator) value() []byte {
	switch {
	case g.yes(0.1):
		return nil
	case g.yes(0.03):
		return bytes.Repeat([]byte{byte(g.IntN(256))}, 1+g.IntN(g.largest))
	}
	return fmt.Appendf(nil, "%d", g.IntN(20))
}

// lease draws the id of one of few leases.
func (g *generator) lease() int64 {
	if g.yes(0.02) {
		return oneOf[int64](g, -1, math.MaxInt64, math.MinInt64)
	}
	return int64(1 + g.IntN(6))
}

// at draws a revision: mostly one that is there.
func (g *generator) at() int64 {
	switch {
	case g.yes(0.6):
		return 0
	case g.yes(0.05):
		return oneOf(g, -1, g.revision+1, g.revision+1000, math.MaxInt64, math.MinInt64)
	}
	return max(1, g.revision-int64(g.IntN(60)))
}

func (g *generator) put() *request {
	return unary[pb.PutResponse](pb.KV_Put_FullMethodName, g.putMessage())
}

func (g *generator) putMessage() *pb.PutRequest {
	r := &pb.PutRequest{Key: g.key(), Value: g.value(), PrevKv: g.yes(0.3)}
	if g.yes(0.2) {
		r.Lease = g.lease()
	}
	if g.yes(0.08) {
		r.IgnoreLease = true
		if g.yes(0.7) {
			r.Lease = 0
		}
	}
	if g.yes(0.08) {
		r.IgnoreValue = true
		if g.yes(0.7) {
			r.Value = nil
		}
	}
	return r
}

func (g *generator) get() *request {
	return unary[pb.RangeResponse](pb.KV_Range_FullMethodName, g.rangeMessage())
}

func (g *generator) rangeMessage() *pb.RangeRequest {
	r := &pb.RangeRequest{Key: g.key(), RangeEnd: g.end(), Revision: g.at(), Serializable: g.yes(0.3),
		KeysOnly: g.yes(0.1), CountOnly: g.yes(0.1)}
	if g.yes(0.3) {
		r.Limit = oneOf[int64](g, 1, 2, 3, 100, -1)
	}
	if g.yes(0.3) {
		r.SortOrder = pb.RangeRequest_SortOrder(g.IntN(3))
		r.SortTarget = pb.RangeRequest_SortTarget(g.IntN(5))
	}
	if g.yes(0.01) {
		r.SortOrder = oneOf[pb.RangeRequest_SortOrder](g, -1, 1, 3)
		r.SortTarget = oneOf[pb.RangeRequest_SortTarget](g, -1, 5)
	}
	for _, bound := range []*int64{&r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision} {
		if g.yes(0.05) {
			*bound = g.at()
		}
	}
	return r
}

func (g *generator) remove() *request {
	return unary[pb.DeleteRangeResponse](pb.KV_DeleteRange_FullMethodName, g.removeMessage())
}

func (g *generator) removeMessage() *pb.DeleteRangeRequest {
	r := &pb.DeleteRangeRequest{Key: g.key(), PrevKv: g.yes(0.4)}
	if g.yes(0.2) {
		r.RangeEnd = g.end()
	}
	return r
}

func (g *generator) compact() *request {
	r := &pb.CompactionRequest{Revision: max(1, g.revision-int64(g.IntN(40))), Physical: true}
	if g.yes(0.1) {
		r.Revision = oneOf(g, -1, 0, 1, g.revision, g.revision+1, math.MaxInt64)
	}
	return unary[pb.CompactionResponse](pb.KV_Compact_FullMethodName, r)
}

func (g *generator) txn() *request {
	return unary[pb.TxnResponse](pb.KV_Txn_FullMethodName, g.txnMessage(2))
}

// txnMessage draws a transaction whose operations may be transactions, so many levels deep.
func (g *generator) txnMessage(depth int) *pb.TxnRequest {
	r := &pb.TxnRequest{}
	for range g.IntN(4) {
		r.Compare = append(r.Compare, g.compare())
	}
	most := 4
	if g.yes(0.01) {
		most = 140 // more than the limit
	}
	for range g.IntN(most) {
		r.Success = append(r.Success, g.op(depth))
	}
	for range g.IntN(3) {
		r.Failure = append(r.Failure, g.op(depth))
	}
	return r
}

func (g *generator) op(depth int) *pb.RequestOp {
	switch {
	case g.yes(0.005):
		return &pb.RequestOp{}
	case depth > 0 && g.yes(0.15):
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: g.txnMessage(depth - 1)}}
	case g.yes(0.4):
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: g.rangeMessage()}}
	case g.yes(0.25):
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: g.removeMessage()}}
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: g.putMessage()}}
}

func (g *generator) compare() *pb.Compare {
	c := &pb.Compare{Key: g.key(), Result: pb.Compare_CompareResult(g.IntN(4))}
	if g.yes(0.2) {
		c.RangeEnd = g.end()
	}
	switch g.IntN(6) {
	case 0:
		c.Target, c.TargetUnion = pb.Compare_VERSION, &pb.Compare_Version{Version: int64(g.IntN(4))}
	case 1:
		c.Target, c.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: g.at()}
	case 2:
		c.Target, c.TargetUnion = pb.Compare_MOD, &pb.Compare_ModRevision{ModRevision: g.at()}
	case 3:
		c.Target, c.TargetUnion = pb.Compare_VALUE, &pb.Compare_Value{Value: g.value()}
	case 4:
		c.Target, c.TargetUnion = pb.Compare_LEASE, &pb.Compare_Lease{Lease: g.lease()}
	default:
		c.Target = pb.Compare_CompareTarget(g.IntN(7)) // without what to compare with, or unknown
	}
	return c
}

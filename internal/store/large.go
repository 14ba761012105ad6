package store

import (
	"errors"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Large values are removed from a request before it is ordered. Records replace them in the command; largecommand.go
// has its format.

// smallestRecord is the size from which on values are compared by their records. It does not
// depend on the threshold, which differs between members and from start to start. No value below
// this size is ever in a body.
const smallestRecord = 1 << 10

// extracted is a value that will be part of a body.
type extracted struct {
	record record
	value  []byte
	offset int
}

// extraction removes the large values from a request.
type extraction struct {
	threshold int // of values that are put; 0: none is large
	// marked: values that begin like a record are extracted, too. Otherwise such a value could not be distinguished from
	// a real record.
	marked  bool
	request *pb.InternalRaftRequest
	values  []extracted
	at      map[record]int // in values; nil while there is one at most
	bytes   int
	// rewritten: something else than a value that is put was changed.
	rewritten bool
}

// SetLargeValueBytes changes Options.LargeValueBytes, above 0, for values that are put from now on. It has no effect
// where there are no bodies, or no large values.
func (s *Store) SetLargeValueBytes(from int) {
	if s.opts.LargeValueBytes > 0 {
		s.largeFrom.Store(int64(from))
	}
}

// extract returns a request without its large values. It does not change the request.
func (s *Store) extract(r *pb.InternalRaftRequest) *extraction {
	m := &extraction{threshold: int(s.largeFrom.Load()), marked: s.opts.Bodies != nil, request: r}
	switch {
	case r.Put != nil:
		if m.large(r.Put.Value) {
			m.request = &pb.InternalRaftRequest{Header: r.Header, Put: m.put(r.Put)}
		}
	case r.Txn != nil && m.concerns(r.Txn):
		m.request = &pb.InternalRaftRequest{Header: r.Header, Txn: m.txn(r.Txn)}
	}
	return m
}

func (m *extraction) changed() bool { return len(m.values) > 0 || m.rewritten }

// large reports whether a value that is put goes into the body.
func (m *extraction) large(value []byte) bool {
	return m.threshold > 0 && len(value) >= m.threshold || m.marked && marked(value)
}

// comparedByRecord reports whether records of the values are compared in place of them.
func comparedByRecord(c *pb.Compare) bool {
	if c.Target != pb.Compare_VALUE || c.Result != pb.Compare_EQUAL && c.Result != pb.Compare_NOT_EQUAL {
		return false
	}
	value := c.GetValue()
	return len(value) >= smallestRecord || marked(value)
}

// comparedByOrder reports whether a comparison asks which value is greater, which records do not show.
func comparedByOrder(c *pb.Compare) bool {
	return c.Target == pb.Compare_VALUE && (c.Result == pb.Compare_LESS || c.Result == pb.Compare_GREATER)
}

// sortedByValue reports whether a range is sorted by value, which records do not show.
func sortedByValue(r *pb.RangeRequest) bool {
	return r.SortTarget == pb.RangeRequest_VALUE && !r.CountOnly
}

// errConcerned ends a walk.
var errConcerned = errors.New("concerned")

// concerns reports whether anything in a transaction has to be rewritten.
func (m *extraction) concerns(t *pb.TxnRequest) bool {
	return eachTxn(t, func(t *pb.TxnRequest) error {
		if slices.ContainsFunc(t.Compare, comparedByRecord) || slices.ContainsFunc(t.Success, m.concerned) ||
			slices.ContainsFunc(t.Failure, m.concerned) {
			return errConcerned
		}
		return nil
	}) != nil
}

func (m *extraction) concerned(op *pb.RequestOp) bool {
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		return m.large(r.RequestPut.Value)
	case *pb.RequestOp_RequestRange:
		return sortedByValue(r.RequestRange)
	}
	return false
}

func (m *extraction) txn(t *pb.TxnRequest) *pb.TxnRequest {
	out, _ := rewriteTxn(t, m) // its parts return no error
	return out
}

func (m *extraction) compare(c *pb.Compare) (*pb.Compare, error) {
	if !comparedByRecord(c) {
		return c, nil
	}
	m.rewritten = true
	return &pb.Compare{
		Key: c.Key, RangeEnd: c.RangeEnd, Target: c.Target, Result: c.Result,
		TargetUnion: &pb.Compare_Value{Value: recordOf(c.GetValue()).encode()},
	}, nil
}

func (m *extraction) op(op *pb.RequestOp) *pb.RequestOp {
	if !m.concerned(op) {
		return op
	}
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		op = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: m.put(r.RequestPut)}}
	case *pb.RequestOp_RequestRange:
		m.rewritten = true
		op = &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: unsorted(r.RequestRange)}}
	}
	return op
}

// put returns the request with a record in place of its value.
func (m *extraction) put(p *pb.PutRequest) *pb.PutRequest {
	r := recordOf(p.Value)
	m.add(r, p.Value)
	return &pb.PutRequest{
		Key: p.Key, Value: r.encode(), Lease: p.Lease, PrevKv: p.PrevKv, IgnoreValue: p.IgnoreValue,
		IgnoreLease: p.IgnoreLease,
	}
}

// add puts a value into the body, unless an equal one is there.
func (m *extraction) add(r record, value []byte) {
	if len(m.values) == 1 && m.at == nil {
		m.at = map[record]int{m.values[0].record: 0}
	}
	if _, known := m.at[r]; known {
		return
	}
	if m.at != nil {
		m.at[r] = len(m.values)
	}
	m.values = append(m.values, extracted{r, value, m.bytes})
	m.bytes += len(value)
}

// body returns the values, one after the other. A single one is not copied.
func (m *extraction) body() []byte {
	if len(m.values) == 0 {
		return nil
	}
	if len(m.values) == 1 {
		return m.values[0].value
	}
	b := make([]byte, 0, m.bytes)
	for i := range m.values {
		b = append(b, m.values[i].value...)
	}
	return b
}

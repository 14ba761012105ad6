package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/store/sums"
)

// Large values are removed from a request before it is ordered. Records replace them in the command, which every
// member applies. The bytes are the command's body, which the log may keep in fragments. The prefix of such a command
// is, after its kind:
//
//	number of values, and for each its SHA-256, size and offset in the body
//	number of things that must not have changed, and for each the key, the end of its
//	range, the number of keys there and a revision
//
// with numbers as varints and byte strings after their length.

// smallestRecord is the size from which on values are compared by their records. It does not
// depend on the threshold, which differs between members and from start to start. No value below
// this size is ever in a body.
const smallestRecord = 1 << 10

// unchanged is something that a client saw before its transaction was ordered, and that must
// still be so when it is applied.
type unchanged struct {
	key, end []byte
	count    int64 // of the keys in the range
	revision int64 // none of them was written after it
}

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

// extract returns a request without its large values. It does not change the request.
func (s *Store) extract(r *pb.InternalRaftRequest) *extraction {
	m := &extraction{threshold: s.opts.LargeValueBytes, marked: s.opts.Bodies != nil, request: r}
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
		Key: p.Key, Value: r.encode(), Lease: p.Lease, PrevKv: p.PrevKv, IgnoreValue: p.IgnoreValue, IgnoreLease: p.IgnoreLease,
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

// prefix is the part before the request in the command.
func (m *extraction) prefix(u []unchanged) []byte {
	b := binary.AppendUvarint([]byte{kindLarge}, uint64(len(m.values)))
	for i := range m.values {
		v := &m.values[i]
		b = append(b, v.record.sum[:]...)
		b = binary.AppendUvarint(b, v.record.size)
		b = binary.AppendUvarint(b, uint64(v.offset))
	}
	b = binary.AppendUvarint(b, uint64(len(u)))
	for i := range u {
		b = appendBytes(appendBytes(b, u[i].key), u[i].end)
		b = binary.AppendUvarint(b, uint64(u[i].count))
		b = binary.AppendUvarint(b, uint64(u[i].revision))
	}
	return b
}

func appendBytes(b, more []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(more))), more...)
}

// decodeLarge reads a prefix and returns the request after it.
func (c *command) decodeLarge(b []byte) (rest []byte, err error) {
	d := sums.Decoder{Rest: b}
	n := d.Number()
	if n > uint64(len(b)) {
		d.Bad = true
	}
	c.values = make(map[record]uint32)
	for ; n > 0 && !d.Bad; n-- {
		var r record
		copy(r.sum[:], d.Take(uint64(len(r.sum))))
		r.size = d.Number()
		offset := d.Number()
		d.Bad = d.Bad || offset > math.MaxUint32 || r.size > math.MaxUint32
		c.values[r] = uint32(offset)
	}
	for n = d.Number(); n > 0 && !d.Bad; n-- {
		c.unchanged = append(c.unchanged, unchanged{
			key: d.Take(d.Number()), end: d.Take(d.Number()), count: int64(d.Number()), revision: int64(d.Number()),
		})
	}
	if d.Bad {
		return nil, fmt.Errorf("%w: large values", ErrBadCommand)
	}
	return d.Rest, nil
}

// setBody sets the body of a command. If the values are not within the body, the command is malformed.
func (c *command) setBody(ref *BodyRef) error {
	c.body = ref
	if len(c.values) == 0 {
		return nil
	}
	if ref == nil {
		return fmt.Errorf("%w: large values without a body", ErrBadCommand)
	}
	for r, offset := range c.values {
		if !fits(*ref, offset, r.size) {
			return fmt.Errorf("%w: %d bytes at %d of a body of %d", ErrBadCommand, r.size, offset, ref.Size)
		}
	}
	return nil
}

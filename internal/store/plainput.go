package store

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/lease"
)

// A plain put has a key, a value and perhaps a lease, and nothing else. Most commands are plain puts. While no right,
// alarm or quota can refuse one, etcd's appliers change nothing about it, so that it goes to the keys directly.
// Otherwise it is applied as any other request.

// Numbers of fields of etcd's requests.
const (
	fieldPut      protowire.Number = 4 // of InternalRaftRequest
	fieldPutKey   protowire.Number = 1 // of PutRequest
	fieldPutValue protowire.Number = 2
	fieldPutLease protowire.Number = 3
)

// plainAnswer is the result of a plain put, in one allocation.
type plainAnswer struct {
	result Result
	resp   pb.PutResponse
	header pb.ResponseHeader
}

// applyPlain applies a command that is a plain put; nil: it is not, or something could refuse it.
func (s *Store) applyPlain(c *Command) *Result {
	key, value, id, ok := parsePlainPut(c.Data)
	if !ok || c.Body != nil || !s.admitsPlain(key, value) || id != lease.NoLease && s.lessor.Lookup(id) == nil {
		return nil
	}
	return s.putPlain(bytes.Clone(key), bytes.Clone(value), id)
}

// putPlain puts a key and a value, which must not change any more, with a lease that exists, or none. It cannot fail.
func (s *Store) putPlain(key, value []byte, id lease.LeaseID) *Result {
	began := time.Now()
	tx := s.kv.Write(nil)
	a := new(plainAnswer)
	a.header.Revision = tx.Put(key, value, id)
	tx.End()
	a.resp.Header = &a.header
	a.result.Resp, a.result.replaced = &a.resp, s.replaced
	txn.ApplySecObserve("v3", "Put", true, time.Since(began))
	s.warnOfSlow(began, &a.resp, func() *pb.InternalRaftRequest {
		return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: key, Value: value, Lease: int64(id)}}
	})
	return &a.result
}

// warnOfSlow logs a request that took long, as etcd's appliers do.
func (s *Store) warnOfSlow(began time.Time, resp proto.Message, request func() *pb.InternalRaftRequest) {
	if limit := s.opts.WarnApplyDuration; time.Since(began) > limit {
		txn.WarnOfExpensiveRequest(s.lg, limit, began, &pb.InternalRaftStringer{Request: request()}, resp, nil)
	}
}

// admitsPlain reports whether nothing can refuse a plain put.
func (s *Store) admitsPlain(key, value []byte) bool {
	s.plain.Key, s.plain.Value = key, value
	defer func() { s.plain.Key, s.plain.Value = nil, nil }()
	return !s.quotas.some.Load() && s.admits(&s.plain)
}

// admits reports whether neither rights nor an alarm nor the quota of the database can refuse a request.
func (s *Store) admits(r any) bool {
	return !s.rights.auth.IsAuthEnabled() && len(s.limits.alarms.common.Get(pb.AlarmType_NOSPACE)) == 0 &&
		s.limits.quota.Available(r)
}

// parsePlainPut returns key, value and lease of a command that is a plain put. Key and value alias the command.
func parsePlainPut(data []byte) (key, value []byte, id lease.LeaseID, ok bool) {
	put := onlyField(data, fieldPut)
	key, rest := bytesField(put, fieldPutKey)
	if key == nil {
		return nil, nil, 0, false
	}
	if v, after := bytesField(rest, fieldPutValue); v != nil {
		value, rest = v, after
	}
	n, rest := numberField(rest, fieldPutLease)
	return key, value, lease.LeaseID(n), len(rest) == 0
}

// onlyField returns the request of a command that is nothing but this one of etcd's requests; nil: it is another one.
func onlyField(data []byte, want protowire.Number) []byte {
	if len(data) == 0 || data[0] != kindRequest {
		return nil
	}
	field, rest := bytesField(data[1:], want)
	if len(rest) > 0 {
		return nil
	}
	return field
}

// bytesField returns the field with which an encoded message begins, if it is the wanted one and has bytes, and the
// rest of the message. Otherwise it returns nil.
func bytesField(b []byte, want protowire.Number) (field, rest []byte) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 || number != want || kind != protowire.BytesType {
		return nil, b
	}
	field, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		return nil, b
	}
	return field, b[n+m:]
}

// numberField returns the field with which an encoded message begins, if it is the wanted one and a number, and the
// rest of the message. Otherwise it returns 0.
func numberField(b []byte, want protowire.Number) (n uint64, rest []byte) {
	number, kind, at := protowire.ConsumeTag(b)
	if at < 0 || number != want || kind != protowire.VarintType {
		return 0, b
	}
	n, m := protowire.ConsumeVarint(b[at:])
	if m < 0 {
		return 0, b
	}
	return n, b[at+m:]
}

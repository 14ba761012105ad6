package store

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/lease"
)

// A plain put has a key, a value and nothing else. Most commands are plain puts. While no right, alarm or quota can
// refuse one, etcd's appliers change nothing about it, so that it goes to the keys directly. Otherwise it is applied as
// any other request.

// Numbers of fields of etcd's requests.
const (
	fieldPut      protowire.Number = 4 // of InternalRaftRequest
	fieldPutKey   protowire.Number = 1 // of PutRequest
	fieldPutValue protowire.Number = 2
)

// plainAnswer is the result of a plain put, in one allocation.
type plainAnswer struct {
	result Result
	resp   pb.PutResponse
	header pb.ResponseHeader
}

// applyPlain applies a command that is a plain put; nil: it is not, or something could refuse it.
func (s *Store) applyPlain(c *Command) *Result {
	key, value, ok := parsePlainPut(c.Data)
	if !ok || c.Body != nil || !s.admitsPlain(key, value) {
		return nil
	}
	return s.putPlain(bytes.Clone(key), bytes.Clone(value))
}

// putPlain puts a key and a value, which must not change any more. It cannot fail.
func (s *Store) putPlain(key, value []byte) *Result {
	began := time.Now()
	tx := s.kv.Write(nil)
	a := new(plainAnswer)
	a.header.Revision = tx.Put(key, value, lease.NoLease)
	tx.End()
	a.resp.Header = &a.header
	a.result.Resp, a.result.replaced = &a.resp, s.replaced
	txn.ApplySecObserve("v3", "Put", true, time.Since(began))
	s.warnOfSlowPut(began, key, value, &a.resp)
	return &a.result
}

// warnOfSlowPut logs a put that took long, as etcd's appliers do.
func (s *Store) warnOfSlowPut(began time.Time, key, value []byte, resp *pb.PutResponse) {
	if limit := s.opts.WarnApplyDuration; time.Since(began) > limit {
		r := &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: key, Value: value}}
		txn.WarnOfExpensiveRequest(s.lg, limit, began, &pb.InternalRaftStringer{Request: r}, resp, nil)
	}
}

// admitsPlain reports whether nothing can refuse a plain put.
func (s *Store) admitsPlain(key, value []byte) bool {
	s.plain.Key, s.plain.Value = key, value
	defer func() { s.plain.Key, s.plain.Value = nil, nil }()
	return !s.rights.auth.IsAuthEnabled() && !s.quotas.some.Load() &&
		len(s.limits.alarms.common.Get(pb.AlarmType_NOSPACE)) == 0 && s.limits.quota.Available(&s.plain)
}

// parsePlainPut returns key and value of a command that is a plain put. They alias the command.
func parsePlainPut(data []byte) (key, value []byte, ok bool) {
	if len(data) == 0 || data[0] != kindRequest {
		return nil, nil, false
	}
	put, rest := bytesField(data[1:], fieldPut)
	if put == nil || len(rest) > 0 {
		return nil, nil, false
	}
	if key, rest = bytesField(put, fieldPutKey); key == nil {
		return nil, nil, false
	}
	if len(rest) > 0 {
		if value, rest = bytesField(rest, fieldPutValue); value == nil {
			return nil, nil, false
		}
	}
	return key, value, len(rest) == 0
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

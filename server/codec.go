package server

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// codec encodes messages for gRPC as its own codec does, with two differences. Buffers are at most twice as large as a
// message; gRPC's are of 1 MiB from 32 KiB on, and each stream whose client does not read retains some. And the values
// of events are not copied, so all streams that send an event share its value.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// sharedBytes is the size from which on a value is shared.
const sharedBytes = 4 << 10

// buffers are for messages of up to 1 MiB. Larger ones are not pooled.
var buffers = func() mem.BufferPool {
	pool, err := mem.NewBinaryTieredBufferPool(8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	if err != nil {
		panic(err) // the sizes are wrong
	}
	return pool
}()

// Name implements encoding.CodecV2.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2. The message must not change any more.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*pb.WatchResponse); ok && sharesValues(r) {
		return marshalShared(r)
	}
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("server: %T is no message", v)
	}
	size := proto.Size(m)
	options := proto.MarshalOptions{UseCachedSize: true}
	if mem.IsBelowBufferPoolingThreshold(size) {
		b, err := options.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	b := buffers.Get(size)
	if _, err := options.MarshalAppend((*b)[:0], m); err != nil {
		buffers.Put(b)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, buffers)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*pb.PutRequest); ok {
		return unmarshalPut(data, r)
	}
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("server: %T is no message", v)
	}
	b := data.MaterializeToBuffer(buffers)
	defer b.Free()
	return proto.Unmarshal(b.ReadOnlyData(), m)
}

func sharesValues(r *pb.WatchResponse) bool {
	for _, e := range r.Events {
		if len(e.Kv.GetValue()) >= sharedBytes || len(e.PrevKv.GetValue()) >= sharedBytes {
			return true
		}
	}
	return false
}

// Fields of etcd's messages, by their numbers.
const (
	fieldEvents                                      = 11 // of WatchResponse
	fieldType, fieldKv, fieldPrevKv                  = 1, 2, 3
	fieldValue                      protowire.Number = 5 // of KeyValue
)

// marshalShared encodes a response around the values of its events.
func marshalShared(r *pb.WatchResponse) (mem.BufferSlice, error) {
	head := &pb.WatchResponse{
		Header: r.Header, WatchId: r.WatchId, Created: r.Created, Canceled: r.Canceled,
		CompactRevision: r.CompactRevision, CancelReason: r.CancelReason, Fragment: r.Fragment,
	}
	w := &sharedWriter{}
	w.message(head)
	for _, e := range r.Events {
		w.b = protowire.AppendTag(w.b, fieldEvents, protowire.BytesType)
		w.b = protowire.AppendVarint(w.b, uint64(proto.Size(e)))
		if e.Type != 0 {
			w.b = protowire.AppendTag(w.b, fieldType, protowire.VarintType)
			w.b = protowire.AppendVarint(w.b, uint64(e.Type))
		}
		w.keyValue(fieldKv, e.Kv)
		w.keyValue(fieldPrevKv, e.PrevKv)
	}
	w.flush()
	return w.out, w.err
}

// sharedWriter encodes a message in pieces.
type sharedWriter struct {
	out mem.BufferSlice
	b   []byte // the newest piece
	err error  // the first error
}

func (w *sharedWriter) flush() {
	if len(w.b) > 0 {
		w.out, w.b = append(w.out, mem.SliceBuffer(w.b)), nil
	}
}

func (w *sharedWriter) message(m proto.Message) {
	b, err := proto.MarshalOptions{}.MarshalAppend(w.b, m)
	if w.b = b; w.err == nil {
		w.err = err
	}
}

func (w *sharedWriter) keyValue(field protowire.Number, kv *mvccpb.KeyValue) {
	if kv == nil {
		return
	}
	w.b = protowire.AppendTag(w.b, field, protowire.BytesType)
	w.b = protowire.AppendVarint(w.b, uint64(proto.Size(kv)))
	if len(kv.Value) < sharedBytes {
		w.message(kv)
		return
	}
	w.message(&mvccpb.KeyValue{
		Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version, Lease: kv.Lease,
	})
	w.b = protowire.AppendTag(w.b, fieldValue, protowire.BytesType)
	w.b = protowire.AppendVarint(w.b, uint64(len(kv.Value)))
	w.flush()
	w.out = append(w.out, mem.SliceBuffer(kv.Value))
}

package server

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid/internal/sys"
)

// unmarshalPut decodes a put, the most frequent request, without reflection. Its bytes are copied once, into memory
// that key and value share.
func unmarshalPut(data mem.BufferSlice, r *pb.PutRequest) error {
	b := sys.Uncleared(data.Len())
	data.CopyTo(b)
	r.Reset()
	if readPut(b, r) {
		return nil
	}
	return proto.Unmarshal(b, r)
}

// readPut sets the fields of a put. It returns false if b has others, or is malformed.
func readPut(b []byte, r *pb.PutRequest) bool {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		switch kind {
		case protowire.BytesType:
			value, n := protowire.ConsumeBytes(b)
			if n < 0 || !setPutBytes(r, field, value[:len(value):len(value)]) {
				return false
			}
			b = b[n:]
		case protowire.VarintType:
			value, n := protowire.ConsumeVarint(b)
			if n < 0 || !setPutVarint(r, field, value) {
				return false
			}
			b = b[n:]
		default:
			return false
		}
	}
	return true
}

func setPutBytes(r *pb.PutRequest, field protowire.Number, value []byte) bool {
	switch field {
	case 1:
		r.Key = value
	case 2:
		r.Value = value
	default:
		return false
	}
	return true
}

func setPutVarint(r *pb.PutRequest, field protowire.Number, value uint64) bool {
	switch field {
	case 3:
		r.Lease = int64(value)
	case 4:
		r.PrevKv = protowire.DecodeBool(value)
	case 5:
		r.IgnoreValue = protowire.DecodeBool(value)
	case 6:
		r.IgnoreLease = protowire.DecodeBool(value)
	default:
		return false
	}
	return true
}

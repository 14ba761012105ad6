package server

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// asReceived is a message in frames of 16 KiB.
func asReceived(b []byte) mem.BufferSlice {
	var s mem.BufferSlice
	for len(b) > 0 {
		n := min(len(b), 16<<10)
		s, b = append(s, mem.SliceBuffer(bytes.Clone(b[:n]))), b[n:]
	}
	return s
}

// Whatever comes, it is decoded as protobuf's own decoder does, and what that refuses is refused.
func TestPutsAreDecodedAsProtobufDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(limit int) []byte {
		b := make([]byte, random.IntN(limit))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	var refused, taken int
	for i := range 20_000 {
		limit := 40
		if i%100 == 0 {
			limit = 200_000
		}
		b, err := proto.Marshal(&pb.PutRequest{Key: some(9), Value: some(limit), Lease: int64(random.Uint64N(3)) - 1,
			PrevKv: random.IntN(2) == 0, IgnoreValue: random.IntN(2) == 0, IgnoreLease: random.IntN(2) == 0})
		require.NoError(t, err)
		switch {
		case i%4 == 1 && len(b) > 0:
			b[random.IntN(min(len(b), 20))] ^= 1 << random.IntN(8)
		case i%4 == 2:
			b = b[:random.IntN(len(b)+1)]
		case i%4 == 3:
			b = append(b, some(20)...)
		}
		want, got := new(pb.PutRequest), &pb.PutRequest{Key: []byte("earlier"), Lease: 7}
		wantErr := proto.Unmarshal(b, want)
		gotErr := codec{}.Unmarshal(asReceived(b), got)
		require.Equal(t, wantErr == nil, gotErr == nil, "%x: %v, %v", b, wantErr, gotErr)
		if wantErr != nil {
			refused++
			continue
		}
		taken++
		require.True(t, proto.Equal(want, got), "%x", b)
	}
	require.Greater(t, refused, 1000)
	require.Greater(t, taken, 10_000)
}

// One buffer has key and value, and no byte is copied twice.
func TestAPutIsOneAllocation(t *testing.T) {
	b, err := proto.Marshal(&pb.PutRequest{Key: []byte("key"), Value: make([]byte, 600<<10), Lease: 3})
	require.NoError(t, err)
	data, r := asReceived(b), new(pb.PutRequest)
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { require.NoError(t, codec{}.Unmarshal(data, r)) }), 1.0)
	require.Len(t, r.Value, 600<<10)
	require.Equal(t, len(r.Key), cap(r.Key), "an append to the key would change the value")
}

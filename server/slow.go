package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// slowRequests logs requests that take long, one a second at most, so that a member that is slow is not slower because
// it logs. It is safe for concurrent use.
type slowRequests struct {
	logger  *slog.Logger
	above   time.Duration
	base    time.Time
	last    atomic.Int64 // when one was logged, in nanoseconds since base
	unnamed atomic.Int64 // how many were not logged since
}

// note logs a request that took longer than it should, without its values.
func (s *slowRequests) note(ctx context.Context, method string, req any, err error, began time.Time,
	took time.Duration) {
	if took <= s.above {
		return
	}
	now, last := began.Add(took).Sub(s.base).Nanoseconds(), s.last.Load()
	if last > 0 && now-last < time.Second.Nanoseconds() || !s.last.CompareAndSwap(last, now) {
		s.unnamed.Add(1)
		return
	}
	args := []any{"method", method, "took", took.Round(time.Millisecond), "above", s.above}
	if p, ok := peer.FromContext(ctx); ok {
		args = append(args, "client", p.Addr.String())
	}
	if m, ok := req.(proto.Message); ok {
		args = append(args, "bytes", proto.Size(m))
	}
	if key := firstKey(req); key != nil {
		args = append(args, "key", string(key[:min(len(key), loggedKey)]))
	}
	if stages := passageOf(ctx).stages(took); len(stages) > 0 {
		args = append(args, slog.Group("stages", logged(stages)...))
	}
	if err != nil {
		args = append(args, "err", err)
	}
	if n := s.unnamed.Swap(0); n > 0 {
		args = append(args, "others", n)
	}
	s.logger.Warn("request took long", args...)
}

// logged is how long each stage was.
func logged(stages []passed) []any {
	args := make([]any, len(stages))
	for i, s := range stages {
		args[i] = slog.Duration(s.stage, (s.to - s.from).Round(time.Microsecond))
	}
	return args
}

// loggedKey is how many bytes of a key are logged.
const loggedKey = 256

// firstKey is the key that a request names first; nil: it names none.
func firstKey(req any) []byte {
	switch r := req.(type) {
	case *pb.RangeRequest:
		return r.Key
	case *pb.PutRequest:
		return r.Key
	case *pb.DeleteRangeRequest:
		return r.Key
	case *pb.TxnRequest:
		for _, c := range r.Compare {
			return c.Key
		}
	}
	return nil
}

package server

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3compactor"
)

// AutoCompaction compacts history automatically, on the leader. At most one of the fields is set.
// With neither, history is kept until a client compacts.
type AutoCompaction struct {
	Period    time.Duration // keep this much time
	Revisions int64         // keep this many revisions
}

func (a AutoCompaction) check() error {
	if a.Period < 0 || a.Revisions < 0 || a.Period > 0 && a.Revisions > 0 {
		return fmt.Errorf("server: auto compaction keeps a time or a number of revisions, not %s and %d",
			a.Period, a.Revisions)
	}
	return nil
}

// newCompactor returns nil if history is kept.
func (s *Server) newCompactor() (v3compactor.Compactor, error) {
	a, lg := s.cfg.AutoCompaction, zap.New(&slogCore{logger: s.logger})
	switch {
	case a.Period > 0:
		return v3compactor.New(lg, v3compactor.ModePeriodic, a.Period, compactable{s}, compactable{s})
	case a.Revisions > 0:
		return v3compactor.New(lg, v3compactor.ModeRevision, time.Duration(a.Revisions), compactable{s}, compactable{s})
	}
	return nil, nil
}

// compactable is what the compactor uses of the server.
type compactable struct{ s *Server }

// Rev implements v3compactor.RevGetter.
func (c compactable) Rev() int64 { return c.s.store.Revision() }

// Compact implements v3compactor.Compactable. The server may do what users may not.
func (c compactable) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	return c.s.kv.Compact(c.s.store.Auth().WithRoot(ctx), r)
}

// compactWhileLeading lets only the leader compact: the others need not.
func (s *Server) compactWhileLeading(leading bool) {
	switch {
	case s.compactor == nil:
	case leading:
		s.compactor.Resume()
	default:
		s.compactor.Pause()
	}
}

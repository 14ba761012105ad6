package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// Members compare checksums of their histories: those which each computes when history is
// compacted, which costs nothing, and, if asked for, new ones of all of it, during which a
// member writes nothing. It finds what checksums of keys cannot: members that wrote different things.

// agreement is what a comparison of hashes says to the member that made it.
type agreement int

const (
	hashesAgree    agreement = iota // or too little is known
	hashesOutvoted                  // a majority has another one
	hashesSplit                     // they differ, and no majority has one
)

// judgeHashes compares a member's hash with those of other voters at the same revisions. voters is
// the number of all voters, also of those that did not answer. A learner has no vote.
func judgeHashes(own uint32, votes bool, others []uint32, voters int) agreement {
	counts := map[uint32]int{}
	for _, h := range others {
		counts[h]++
	}
	if votes {
		counts[own]++
	}
	differ := false
	for hash, n := range counts { // at most one has a majority
		differ = differ || hash != own
		if 2*n > voters && hash != own {
			return hashesOutvoted
		}
	}
	if differ && 2*counts[own] <= voters {
		return hashesSplit
	}
	return hashesAgree
}

// compareHashes compares at the configured intervals, for the life of the server.
func (s *Server) compareHashes(interval time.Duration, own func() (store.HashKV, bool, error), what byte) {
	if interval <= 0 {
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.stopping:
			return
		}
		h, ok, err := own()
		if err != nil {
			s.logger.Warn("cannot compute a hash to compare", "err", err)
		}
		if ok {
			s.compareHash(&h, what)
		}
	}
}

func (s *Server) compareHash(own *store.HashKV, what byte) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	question, err := encodeAsk(what, nil, &pb.HashKVRequest{Revision: own.HashRevision})
	if err != nil {
		return
	}
	var others []uint32
	var who []string
	voters, votes := 0, false
	st := s.log.Status()
	for i := range st.Members {
		m := &st.Members[i]
		if m.Learner {
			continue
		}
		voters++
		if m.ID == s.id {
			votes = true
			continue
		}
		if h := s.hashOf(ctx, m.ID, question); h != nil && h.CompactRevision == own.CompactRevision && h.HashRevision == own.HashRevision {
			others = append(others, h.Hash)
			who = append(who, fmt.Sprintf("%s: %08x", m.ID, h.Hash))
		}
	}
	cause := fmt.Errorf("its history up to revision %d, compacted at %d, has hash %08x, others have %v", own.HashRevision, own.CompactRevision, own.Hash, who)
	switch judgeHashes(own.Hash, votes, others, voters) {
	case hashesOutvoted:
		s.store.Damage().Condemn(cause)
	case hashesSplit:
		s.logger.Error("members differ and no majority agrees: an operator has to decide who is right", "err", cause)
		if err := s.orderAlarm(pb.AlarmRequest_ACTIVATE); err != nil {
			s.logger.Error("the alarm cannot be raised", "err", err)
		}
	}
}

// hashOf asks another member; nil if it does not know.
func (s *Server) hashOf(ctx context.Context, id braid.MemberID, question []byte) *pb.HashKVResponse {
	h := new(pb.HashKVResponse)
	answer, err := s.askMember(ctx, id, question)
	if err == nil {
		err = proto.Unmarshal(answer, h)
	}
	if err != nil {
		s.logger.Debug("a member has no hash to compare", "member", id.String(), "err", err)
		return nil
	}
	return h
}

var errNoHash = status.Error(codes.NotFound, "etcdserver: no hash is kept of this revision")

// keptHashHere and hashHere answer another member.
func (s *Server) keptHashHere(_ context.Context, _ *auth.AuthInfo, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	h, ok := s.store.KeptHash(r.Revision)
	if !ok {
		return nil, errNoHash
	}
	return hashResponse(&h), s.store.Damage().Err()
}

func (s *Server) hashHere(ctx context.Context, _ *auth.AuthInfo, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	h, err := s.store.HashKV(r.Revision)
	return hashResponse(&h), errors.Join(err, ctx.Err())
}

func hashResponse(h *store.HashKV) *pb.HashKVResponse {
	return &pb.HashKVResponse{Hash: h.Hash, CompactRevision: h.CompactRevision, HashRevision: h.HashRevision}
}

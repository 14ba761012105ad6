package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/server/internal/history"
)

// Members compare checksums of their histories: those which each computes when history is
// compacted, which costs nothing, and, if asked for, new ones of all of it, during which a
// member writes nothing. It finds what checksums of keys cannot: members that wrote different things.

// agreement is the outcome of a comparison of hashes for the member that made it.
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

// hashChecks compares checksums of histories with other members.
type hashChecks struct {
	id       braid.MemberID
	store    *store.Store
	log      Log
	asker    *asker
	logger   *slog.Logger
	timeout  time.Duration
	stopping <-chan struct{}
	// raise raises the alarm CORRUPT for this member.
	raise func() error
}

// run compares at the configured intervals, until the server stops.
func (c *hashChecks) run(interval time.Duration, own func() (store.HashKV, bool, error), what byte) {
	if interval <= 0 {
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stopping:
			return
		}
		h, ok, err := own()
		if err != nil {
			c.logger.Warn("cannot compute a hash to compare", "err", err)
		}
		if ok {
			c.compare(&h, what)
		}
	}
}

func (c *hashChecks) compare(own *store.HashKV, what byte) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	question, err := encodeAsk(what, nil, &pb.HashKVRequest{Revision: own.HashRevision})
	if err != nil {
		return
	}
	var others []uint32
	var who []string
	voters, votes := 0, false
	st := c.log.Status()
	for i := range st.Members {
		m := &st.Members[i]
		if m.Learner {
			continue
		}
		voters++
		if m.ID == c.id {
			votes = true
			continue
		}
		if h := c.hashOf(ctx, m.ID, question); h != nil && h.CompactRevision == own.CompactRevision &&
			h.HashRevision == own.HashRevision {
			others = append(others, h.Hash)
			who = append(who, fmt.Sprintf("%s: %08x", m.ID, h.Hash))
		}
	}
	cause := fmt.Errorf("its history up to revision %d, compacted at %d, has hash %08x, others have %v", own.HashRevision,
		own.CompactRevision, own.Hash, who)
	switch judgeHashes(own.Hash, votes, others, voters) {
	case hashesOutvoted:
		c.store.Damage().Condemn(cause)
	case hashesSplit:
		c.logger.Error("members differ and no majority agrees: an operator has to decide who is right",
			history.EventKey, "members-differ", "err", cause)
		if err := c.raise(); err != nil {
			c.logger.Error("the alarm cannot be raised", "err", err)
		}
	}
}

// hashOf asks another member; nil if it does not know.
func (c *hashChecks) hashOf(ctx context.Context, id braid.MemberID, question []byte) *pb.HashKVResponse {
	h := new(pb.HashKVResponse)
	answer, err := c.asker.member(ctx, id, question)
	if err == nil {
		err = proto.Unmarshal(answer, h)
	}
	if err != nil {
		c.logger.Debug("a member has no hash to compare", "member", id.String(), "err", err)
		return nil
	}
	return h
}

var errNoHash = status.Error(codes.NotFound, "etcdserver: no hash is kept of this revision")

// keptHere and freshHere answer another member.
func (c *hashChecks) keptHere(_ context.Context, _ *auth.AuthInfo, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	h, ok := c.store.KeptHash(r.Revision)
	if !ok {
		return nil, errNoHash
	}
	return hashResponse(&h), c.store.Damage().Err()
}

func (c *hashChecks) freshHere(ctx context.Context, _ *auth.AuthInfo, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	h, err := c.store.HashKV(ctx, r.Revision)
	return hashResponse(&h), errors.Join(err, ctx.Err())
}

func hashResponse(h *store.HashKV) *pb.HashKVResponse {
	return &pb.HashKVResponse{Hash: h.Hash, CompactRevision: h.CompactRevision, HashRevision: h.HashRevision}
}

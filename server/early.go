package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/auth"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/server/internal/metrics"
)

// A put that is answered before it is applied must not fail then, and a put without a user must not take
// effect once AuthEnable was acknowledged. Both hold by this rule (docs/internals/lcr.md):
//
//  1. A member answers early only while its state is fresh: a read barrier that began no longer than earlyFor
//     ago was passed, and in that state authentication is off and the key has no prefix with a quota. It checks when
//     the put comes, and again before it answers.
//  2. AuthEnable is acknowledged when (a) no member answers early any more, because each applied it or
//     earlyFor went by; (b) then a barrier over all lanes was passed, so that every put answered early is in the
//     order; (c) then the command that closes is applied. From its place on accepted puts from before
//     are refused.
//  3. A quota of a prefix is acknowledged after (a) and (b). Whether a put of such a key is refused is decided when it
//     is applied, and then it is answered. One that its member encoded before it knew of the quota takes effect.

// earlyFor is how old the state may be by which a member answers early. For this long puts are answered early without a
// leader, and AuthEnable takes this long if it does not reach a member.
const earlyFor = 4 * time.Second

// freshness bounds the age of this member's state.
type freshness struct {
	barrier func(context.Context) error
	limit   time.Duration
	// began is when the newest barrier began that was passed, by sys.Steady: a host may sleep. Negative: none was.
	began    atomic.Int64
	renewing atomic.Bool // a barrier is in progress in the background
}

func newFreshness(barrier func(context.Context) error, limit time.Duration) *freshness {
	f := &freshness{barrier: barrier, limit: limit}
	f.began.Store(-1)
	return f
}

// age is how old the state is at most; more than limit if that is not known.
func (f *freshness) age() time.Duration {
	began := f.began.Load()
	if began < 0 {
		return f.limit + 1
	}
	return sys.Steady() - time.Duration(began)
}

// fresh reports whether puts may be answered by this state.
func (f *freshness) fresh() bool { return f.age() <= f.limit }

// renew passes a barrier.
func (f *freshness) renew(ctx context.Context) error {
	began := int64(sys.Steady())
	if err := f.barrier(ctx); err != nil {
		return err
	}
	for {
		last := f.began.Load()
		if last >= began || f.began.CompareAndSwap(last, began) {
			return nil
		}
	}
}

// ensure returns when the state is fresh. It renews it in good time, so that puts seldom wait for that.
func (f *freshness) ensure(ctx context.Context) error {
	age := f.age()
	if age > f.limit {
		ctx, cancel := context.WithTimeout(ctx, f.limit/4)
		defer cancel()
		if err := f.renew(ctx); err != nil {
			return &store.NotAcceptedError{
				Detail: fmt.Sprintf("this member has reached no leader for %s, and cannot know whether authentication is on",
					f.limit)}
		}
	} else if age > f.limit/4 && f.renewing.CompareAndSwap(false, true) {
		go func() {
			defer f.renewing.Store(false)
			_ = f.renew(context.Background()) // bounded by the barrier; else the next put tries again
		}()
	}
	return nil
}

// earlyAnswers answers puts before they are applied, and ends that when authentication is turned on.
type earlyAnswers struct {
	fresh   *freshness
	store   *store.Store
	log     Log
	asker   *asker
	metrics *metrics.Counts
	timeout time.Duration
}

// answer answers a put that is certain to take effect, if it is certain that it is permitted.
func (a *earlyAnswers) answer(ctx context.Context, r *pb.PutRequest, e *store.Encoded,
	early *braid.Accepted) (*pb.PutResponse, string, error) {
	if a.fresh.fresh() && a.store.AcceptsEarly(r.Key) {
		a.metrics.Accepted.Add(1)
		return &pb.PutResponse{Header: &pb.ResponseHeader{Revision: a.store.Revision()}}, braid.FormatToken(early.Token), nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	err := a.log.Read(ctx, braid.ReadOptions{After: []braid.Token{early.Token}, Local: true})
	if err != nil || a.store.Closed(e.AuthRevision) {
		return nil, "", errors.Join(braid.ErrMaybeCommitted, err) // it may have been refused
	}
	return &pb.PutResponse{Header: &pb.ResponseHeader{Revision: a.store.Revision()}}, "", nil
}

// close returns when no put encoded at an auth revision or before is answered early any more, and those that were not
// answered have no effect.
func (a *earlyAnswers) close(ctx context.Context, position, revision uint64) error {
	if err := a.settle(ctx, position); err != nil {
		return err
	}
	_, err := a.log.Propose(ctx, store.CloseCommand(revision))
	return err
}

// settle returns when no put is answered early any more by a state before a position, and all that were are applied
// here.
func (a *earlyAnswers) settle(ctx context.Context, position uint64) error {
	a.awaitAll(ctx, position)
	return a.log.Read(ctx, braid.ReadOptions{Barrier: true})
}

// awaitAll returns when all members have applied everything up to a position, or earlyFor has gone by. A tenth more
// covers clocks of different rates (docs/internals/raft.md).
func (a *earlyAnswers) awaitAll(ctx context.Context, position uint64) {
	ctx, cancel := context.WithTimeout(ctx, a.fresh.limit+a.fresh.limit/10)
	defer cancel()
	question, err := encodeAsk(askApplied, nil, wrapperspb.UInt64(position))
	if err != nil {
		<-ctx.Done() // never: the message is a number
		return
	}
	var asked sync.WaitGroup
	members := a.log.Status().Members
	for i := range members {
		asked.Go(func() {
			if _, err := a.asker.member(ctx, members[i].ID, question); err != nil {
				<-ctx.Done()
			}
		})
	}
	asked.Wait()
}

// appliedHere answers another member when this one has applied everything up to a position.
func (a *earlyAnswers) appliedHere(ctx context.Context, _ *auth.AuthInfo,
	position *wrapperspb.UInt64Value) (*emptypb.Empty, error) {
	return new(emptypb.Empty), a.store.WaitApplied(ctx, position.GetValue())
}

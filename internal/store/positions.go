package store

import (
	"container/heap"
	"context"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/auth"
)

// positions makes callers wait until a position is applied. A cancelled wait leaves nothing behind, and waits for
// positions that do not come cost applying nothing.
type positions struct {
	latch *latch
	stop  <-chan struct{} // closed when the store is closed

	// applied is the position of the last command applied. It never decreases, but in Restore. It may be ahead
	// of last while commands are applied.
	applied atomic.Uint64

	mu    sync.Mutex
	last  uint64
	waits waitQueue
}

// positionWait is a wait for a position.
type positionWait struct {
	position uint64
	reached  chan struct{} // closed when it is applied
	place    int           // in the queue; negative: in none
}

// await waits until a position is applied. Errors: ctx's, the store's fatal error, [ErrClosed].
func (p *positions) await(ctx context.Context, position uint64) error {
	w := p.wait(position)
	if w == nil {
		return nil
	}
	defer p.leave(w)
	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.latch.failed:
		return p.latch.get()
	case <-p.stop:
		return ErrClosed
	}
}

// wait returns nil if a position is applied already. The caller leaves the wait.
func (p *positions) wait(position uint64) *positionWait {
	p.mu.Lock()
	defer p.mu.Unlock()
	if position <= p.last {
		return nil
	}
	w := &positionWait{position: position, reached: make(chan struct{})}
	heap.Push(&p.waits, w)
	return w
}

func (p *positions) leave(w *positionWait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.place >= 0 {
		heap.Remove(&p.waits, w.place)
	}
}

// set records that the state is the one of a position.
func (p *positions) set(position uint64) {
	p.applied.Store(position)
	p.reach(position)
}

// reach records that everything up to a position is applied.
func (p *positions) reach(position uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = position
	for len(p.waits) > 0 && p.waits[0].position <= position {
		close(heap.Pop(&p.waits).(*positionWait).reached)
	}
}

// waitQueue is a heap by position.
type waitQueue []*positionWait

func (q waitQueue) Len() int           { return len(q) }
func (q waitQueue) Less(i, j int) bool { return q[i].position < q[j].position }
func (q waitQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *waitQueue) Push(x any) {
	w := x.(*positionWait)
	w.place = len(*q)
	*q = append(*q, w)
}

func (q *waitQueue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last], w.place = nil, -1
	*q = (*q)[:last]
	return w
}

// A simple token names the position at which it was made. A member that has not applied it does not know the token,
// and waits. Any client can invent a token of a position that does not come for long. So at most mostTokens calls
// wait, each for tokenWait. More of them, or later, a token counts as invalid; its client logs in again.
const (
	mostTokens = 4096
	tokenWait  = 5 * time.Second
)

// awaitToken returns when this member has applied the command that made a call's token.
func (r *Rights) awaitToken(ctx context.Context) error {
	if !strings.HasPrefix(r.opts.AuthToken, "simple") || !r.auth.IsAuthEnabled() {
		return nil
	}
	position := tokenPosition(ctx)
	if position <= r.positions.applied.Load() {
		return nil
	}
	defer r.tokens.Add(-1)
	if r.tokens.Add(1) > mostTokens || position == math.MaxUint64 {
		return auth.ErrInvalidAuthToken
	}
	within, cancel := context.WithTimeout(ctx, tokenWait)
	defer cancel()
	err := r.positions.await(within, position)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return auth.ErrInvalidAuthToken
	}
	return err
}

// tokenPosition is the position that a call's simple token names; 0 if it has none.
func tokenPosition(ctx context.Context) uint64 {
	md, _ := metadata.FromIncomingContext(ctx)
	tokens := md[rpctypes.TokenFieldNameGRPC]
	if len(tokens) == 0 {
		tokens = md[rpctypes.TokenFieldNameSwagger]
	}
	if len(tokens) == 0 {
		return 0
	}
	_, text, _ := strings.Cut(tokens[0], ".")
	position, _ := strconv.ParseUint(text, 10, 64) // etcd's code refuses malformed ones
	return position
}

// reached reports to etcd's code that a token's position is applied: it is by then, or the token is invalid.
func reached(uint64) <-chan struct{} { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

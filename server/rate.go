package server

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	epb "go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	lpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"github.com/braidlog/braid/internal/store"
)

// Rates bound the requests that this member accepts in a second, by user and by prefix of keys. They are not the
// cluster's: each member counts the requests that it receives. Of streams only those of puts are counted, and
// requests without a user are not counted by user.

// RateLimit bounds requests a second.
type RateLimit struct {
	// Of is a user, or a prefix of keys. The user "*" stands for each user without a limit of its own.
	Of string
	// PerSecond is more than 0. As many are taken at once, after a second without any.
	PerSecond float64
}

// ParseRateLimit reads USER=RATE or PREFIX=RATE.
func ParseRateLimit(text string) (RateLimit, error) {
	i := strings.LastIndexByte(text, '=')
	if i > 0 {
		per, err := strconv.ParseFloat(text[i+1:], 64)
		if err == nil && per > 0 && per <= math.MaxInt32 {
			return RateLimit{text[:i], per}, nil
		}
	}
	return RateLimit{}, fmt.Errorf("request rate %q: it is NAME=REQUESTS, and more than 0 a second", text)
}

func (l RateLimit) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(l.PerSecond), max(1, int(math.Ceil(l.PerSecond))))
}

// mostUsers bounds the users with limiters of their own by the limit of "*".
const mostUsers = 10_000

// mostCounted is how often one request counts at most.
const mostCounted = 10_000

// rates has the limiters. It is safe for concurrent use.
type rates struct {
	rights   *store.Rights
	users    map[string]*rate.Limiter
	prefixes []prefixRate
	others   RateLimit    // of each other user; PerSecond 0: none
	refused  atomic.Int64 // requests

	// taking is held while a request is counted: a limiter takes a reservation back only if none was made since.
	taking sync.Mutex
	mu     sync.Mutex
	// other are the users among them that sent requests.
	other map[string]*rate.Limiter
}

type prefixRate struct {
	prefix  string
	end     []byte // the first key behind those with the prefix; {0}: there is none
	limiter *rate.Limiter
}

// newRates returns nil if there are no limits.
func newRates(users, prefixes []RateLimit, rights *store.Rights) *rates {
	if len(users)+len(prefixes) == 0 {
		return nil
	}
	r := &rates{rights: rights, users: map[string]*rate.Limiter{}, other: map[string]*rate.Limiter{}}
	for _, l := range users {
		if l.Of == anyName {
			r.others = l
			continue
		}
		r.users[l.Of] = l.limiter()
	}
	for _, l := range prefixes {
		r.prefixes = append(r.prefixes,
			prefixRate{l.Of, []byte(clientv3.GetPrefixRangeEnd(l.Of)), l.limiter()})
	}
	return r
}

// counted is how often a request counts for a limit.
type counted struct {
	limiter  *rate.Limiter
	n        int
	kind, of string
}

// take counts a request, or refuses it: nothing happened then, and a retry is safe. A request that is refused for its
// rights later does not count, so those who have none cannot use up what others may do. nil limits nothing.
func (r *rates) take(ctx context.Context, req any) error {
	if r == nil {
		return nil
	}
	if key := written(req); len(key) > 0 {
		req = &pb.PutRequest{Key: key}
	}
	var all []counted
	for _, p := range r.prefixes {
		n := p.count(req)
		if n > 0 && r.rights.MayApply(ctx, &pb.InternalRaftRequest{Txn: asTxn(req)}) != nil {
			return nil
		}
		if n > 0 {
			all = append(all, counted{p.limiter, n, "prefix", p.prefix})
		}
	}
	user := r.user(ctx)
	if l := r.of(user); l != nil {
		all = append(all, counted{l, operations(req), "user", user})
	}
	if len(all) == 0 {
		return nil
	}
	return r.takeAll(all)
}

// takeAll counts a request for all of its limits or none. What it counts beyond a burst delays those that come later.
func (r *rates) takeAll(all []counted) error {
	r.taking.Lock()
	defer r.taking.Unlock()
	now, taken := time.Now(), make([]*rate.Reservation, 0, len(all))
	for _, c := range all {
		t := c.limiter.ReserveN(now, min(c.n, c.limiter.Burst()))
		taken = append(taken, t)
		if wait := t.DelayFrom(now); wait > 0 {
			for _, t := range taken {
				t.CancelAt(now)
			}
			r.refused.Add(1)
			return tooMany(c.kind, c.of, wait)
		}
	}
	for _, c := range all {
		burst := c.limiter.Burst()
		for rest := min(c.n, mostCounted) - burst; rest > 0; rest -= burst {
			c.limiter.ReserveN(now, min(rest, burst))
		}
	}
	return nil
}

// refusals is how many requests were refused.
func (r *rates) refusals() int64 {
	if r == nil {
		return 0
	}
	return r.refused.Load()
}

// user is the user of a call; "": there is none, or not a valid one, which the call will be refused for.
func (r *rates) user(ctx context.Context) string {
	if len(r.users) == 0 && r.others.PerSecond == 0 {
		return ""
	}
	info, err := r.rights.AuthInfo(ctx)
	if err != nil || info == nil {
		return ""
	}
	return info.Username
}

// of is the limiter of a user; nil: it has none.
func (r *rates) of(user string) *rate.Limiter {
	if l := r.users[user]; l != nil || user == "" || r.others.PerSecond == 0 {
		return l
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.other[user]
	if l == nil {
		if len(r.other) >= mostUsers {
			clear(r.other)
		}
		l = r.others.limiter()
		r.other[user] = l
	}
	return l
}

// tooMany is etcd's error, with the limit and the time after which a retry may succeed in its details.
func tooMany(kind, of string, wait time.Duration) error {
	s, ok := status.FromError(rpctypes.ErrGRPCRequestTooManyRequests)
	if !ok {
		return rpctypes.ErrGRPCRequestTooManyRequests
	}
	detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)},
		&errdetails.ErrorInfo{Reason: "REQUEST_RATE", Domain: "braid", Metadata: map[string]string{
			kind: strings.ToValidUTF8(of, "\uFFFD"), "retry": "safe"}})
	if err != nil {
		return s.Err()
	}
	return detailed.Err()
}

// written is the key that a call for a lock or an election writes, or the beginning of it; "": the request is another
// one.
func written(req any) []byte {
	inside := func(name []byte) []byte { return append(bytes.Clone(name), '/') }
	switch r := req.(type) {
	case *lpb.LockRequest:
		return inside(r.Name)
	case *lpb.UnlockRequest:
		return r.Key
	case *epb.CampaignRequest:
		return inside(r.Name)
	case *epb.ProclaimRequest:
		return r.Leader.GetKey()
	case *epb.ResignRequest:
		return r.Leader.GetKey()
	}
	return nil
}

// asTxn is a transaction that needs the rights of a request for keys.
func asTxn(req any) *pb.TxnRequest {
	op := new(pb.RequestOp)
	switch r := req.(type) {
	case *pb.TxnRequest:
		return r
	case *pb.PutRequest:
		op.Request = &pb.RequestOp_RequestPut{RequestPut: r}
	case *pb.RangeRequest:
		op.Request = &pb.RequestOp_RequestRange{RequestRange: r}
	case *pb.DeleteRangeRequest:
		op.Request = &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}
	}
	return &pb.TxnRequest{Success: []*pb.RequestOp{op}}
}

// operations is how much a request counts for its user: a transaction as often as its longer branch has operations, or
// as often as it has comparisons, if these are more.
func operations(req any) int { return max(1, count(req, func(_, _ []byte) bool { return true })) }

// count is how much a request counts for a prefix: its operations, or comparisons, with keys that have it.
func (p *prefixRate) count(req any) int {
	return count(req, func(key, end []byte) bool {
		switch {
		case len(end) == 0:
			return bytes.HasPrefix(key, []byte(p.prefix))
		case !isLast(p.end) && bytes.Compare(key, p.end) >= 0:
			return false
		}
		return isLast(end) || string(end) > p.prefix
	})
}

// isLast reports whether the end of a range is that of all keys.
func isLast(end []byte) bool { return len(end) == 1 && end[0] == 0 }

// count counts the operations, or comparisons, of a request whose keys fit.
func count(req any, fits func(key, end []byte) bool) int {
	one := func(key, end []byte) int {
		if fits(key, end) {
			return 1
		}
		return 0
	}
	switch r := req.(type) {
	case *pb.PutRequest:
		return one(r.Key, nil)
	case *pb.RangeRequest:
		return one(r.Key, r.RangeEnd)
	case *pb.DeleteRangeRequest:
		return one(r.Key, r.RangeEnd)
	case *pb.TxnRequest:
		compared := 0
		for _, c := range r.Compare {
			compared += one(c.Key, c.RangeEnd)
		}
		return max(countAll(r.Success, fits), countAll(r.Failure, fits), compared)
	}
	return 0
}

func countAll(ops []*pb.RequestOp, fits func(key, end []byte) bool) (n int) {
	for _, op := range ops {
		switch r := op.GetRequest().(type) {
		case *pb.RequestOp_RequestPut:
			n += count(r.RequestPut, fits)
		case *pb.RequestOp_RequestRange:
			n += count(r.RequestRange, fits)
		case *pb.RequestOp_RequestDeleteRange:
			n += count(r.RequestDeleteRange, fits)
		case *pb.RequestOp_RequestTxn:
			n += count(r.RequestTxn, fits)
		}
	}
	return n
}

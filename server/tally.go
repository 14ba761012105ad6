package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid/server/internal/history"
)

// tallyEvery is how often at most a tally is logged.
const tallyEvery = time.Minute

// tally counts refusals that strangers can cause as often as they like, and logs them at most once in [tallyEvery]. It
// is safe for concurrent use.
type tally struct {
	event, message string

	mu     sync.Mutex
	count  int
	client string
	err    error
	logged time.Time
}

// add counts a refusal. The client is an address.
func (t *tally) add(client string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	t.client, t.err = client, err
}

// log logs what was counted since the last time, if that was long enough before now.
func (t *tally) log(logger *slog.Logger, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 || now.Sub(t.logged) < tallyEvery {
		return
	}
	logger.Warn(t.message, history.EventKey, t.event, "count", t.count, "client", t.client, "err", t.err)
	t.count, t.logged = 0, now
}

// refusals are the tallies of a server.
type refusals struct{ logins, handshakes tally }

func newRefusals() *refusals {
	return &refusals{
		logins:     tally{event: "login-failed", message: "requests with a wrong user, password or token"},
		handshakes: tally{event: "tls-refused", message: "TLS handshakes of clients failed"},
	}
}

// login counts a call that failed, if that was because of its user, password or token.
func (r *refusals) login(ctx context.Context, err error) {
	if status.Code(err) != codes.Unauthenticated && !errors.Is(err, rpctypes.ErrGRPCAuthFailed) {
		return
	}
	client := "unknown"
	if p, ok := peer.FromContext(ctx); ok {
		client = p.Addr.String()
	}
	r.logins.add(client, err)
}

func (r *refusals) log(logger *slog.Logger, now time.Time) {
	r.logins.log(logger, now)
	r.handshakes.log(logger, now)
}

package mapkv

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/braidlog/braid"
)

// stopTimeout is how long requests under way may take to end when a member stops.
const stopTimeout = 2 * time.Second

// Member is a node with its service.
type Member struct {
	Node  *braid.Node
	State *Map
	http  http.Server
	ended chan error
}

// Open starts a node and its service on a listener, which the member closes, also if Open
// fails.
func Open(o braid.Options, clients net.Listener) (*Member, error) {
	m := &Member{State: NewMap(), ended: make(chan error, 1)}
	node, err := braid.Open(o, m.State)
	if err != nil {
		return nil, errors.Join(err, clients.Close())
	}
	m.Node = node
	m.http.Handler = Handler(node, m.State, 0)
	m.http.ReadHeaderTimeout = DefaultTimeout
	go func() { m.ended <- m.http.Serve(clients) }()
	return m, nil
}

// Close ends the service and the node.
func (m *Member) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := m.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = m.http.Close()
	}
	if serr := <-m.ended; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return errors.Join(err, m.Node.Close())
}

// Wait returns when ctx ends or the node stopped by itself, whose error it returns.
func (m *Member) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-m.Node.Done():
		return m.Node.Err()
	}
}

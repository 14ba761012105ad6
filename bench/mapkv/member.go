package mapkv

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/braidlog/braid"
)

const (
	// stopTimeout bounds the wait for requests in progress when a member stops.
	stopTimeout = 2 * time.Second
	// releaseInterval is the interval at which unneeded bodies are released.
	releaseInterval = time.Second
)

// Member is a node with its service.
type Member struct {
	Node  *braid.Node
	State State
	http  http.Server
	ended chan error
}

// Open starts a node and its service on a listener, which the member closes, even if Open fails. Values from
// bodyBytes on are bodies, see [Handler].
func Open(o braid.Options, clients net.Listener, bodyBytes int) (*Member, error) {
	m := &Member{ended: make(chan error, 1)}
	state := NewMap()
	var sm braid.StateMachine = state
	m.State = state
	if n := o.Groups(); n > 0 {
		groups, all, err := NewGroups(n)
		if err != nil {
			return nil, errors.Join(err, clients.Close())
		}
		m.State, sm, bodyBytes = groups, all, -1
	}
	node, err := braid.Open(o, sm)
	if err != nil {
		return nil, errors.Join(err, clients.Close())
	}
	m.Node = node
	m.http.Handler = Handler(node, m.State, 0, bodyBytes)
	m.http.ReadHeaderTimeout = DefaultTimeout
	go func() { m.ended <- m.http.Serve(clients) }()
	if bodyBytes >= 0 {
		go m.release(state)
	}
	return m, nil
}

// release releases unneeded bodies until the node stops.
func (m *Member) release(state *Map) {
	tick := time.NewTicker(releaseInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s := m.Node.Status()
			for _, ref := range state.Dropped(s.Snapshots) {
				m.Node.ReleaseBody(ref)
			}
		case <-m.Node.Done():
			return
		}
	}
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

// Wait returns when ctx ends, or with the node's error when that has stopped by itself.
func (m *Member) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-m.Node.Done():
		return m.Node.Err()
	}
}

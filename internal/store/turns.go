package store

import (
	"context"
	"slices"
	"sync"
)

// turns lets few run at once. Others wait: first those of the client that had its turn longest ago, and those of one
// client in the order in which they came. So a client with many waits for them, and others hardly wait for it.
type turns struct {
	most, each int // that wait: in all, and of each client

	mu      sync.Mutex
	free    int
	waiting int
	queues  map[string][]chan struct{} // by client; none is empty
	order   []string                   // the clients with queues, the next one first
}

func newTurns(atOnce, most, each int) *turns {
	return &turns{most: most, each: each, free: atOnce, queues: map[string][]chan struct{}{}}
}

// begin waits for a turn of a client. Without an error the caller calls end. Errors: [ErrTooManyPasswords] at once if
// too many wait, and ctx's.
func (t *turns) begin(ctx context.Context, client string) error {
	turn, err := t.enter(client)
	if turn == nil {
		return err
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if t.leave(client, turn) {
		return ctx.Err()
	}
	return nil // it came at the last moment
}

// enter returns a channel that is closed when the turn comes; nil if it has come, or never will.
func (t *turns) enter(client string) (chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil, nil
	}
	queue := t.queues[client]
	if t.waiting >= t.most || len(queue) >= t.each {
		return nil, ErrTooManyPasswords
	}
	if len(queue) == 0 {
		t.order = append(t.order, client)
	}
	turn := make(chan struct{})
	t.queues[client] = append(queue, turn)
	t.waiting++
	return turn, nil
}

// leave reports whether it was in time to give up a turn.
func (t *turns) leave(client string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.queues[client], turn)
	if i < 0 {
		return false
	}
	t.waiting--
	if t.queues[client] = slices.Delete(t.queues[client], i, i+1); len(t.queues[client]) == 0 {
		delete(t.queues, client)
		t.order = slices.DeleteFunc(t.order, func(c string) bool { return c == client })
	}
	return true
}

// end ends a turn. The next one begins.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	client := t.order[0]
	queue := t.queues[client]
	close(queue[0])
	t.waiting--
	if t.order = t.order[1:]; len(queue) == 1 {
		delete(t.queues, client)
		return
	}
	t.queues[client] = queue[1:]
	t.order = append(t.order, client)
}

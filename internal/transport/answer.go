package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxErrorText bounds how much of the text of a handler's error is sent to the peer.
const maxErrorText = 4 << 10

// answerer serves the requests of one connection.
type answerer struct {
	t     *Transport
	in    *inbound
	q     *queue
	count *semaphore.Weighted // requests in progress
	bytes *semaphore.Weighted // of requests in progress
	done  sync.WaitGroup

	mu      sync.Mutex
	running map[uint32]context.CancelFunc
}

// answerRequests serves a connection until it ends. At the limit of what may be in progress it
// reads nothing more, so the peer must wait.
func (t *Transport) answerRequests(in *inbound) error {
	a := &answerer{
		t: t, in: in, q: newQueue(t.opt.QueueBytes, t.opt.TLS != nil), running: map[uint32]context.CancelFunc{},
		count: semaphore.NewWeighted(int64(t.opt.MaxRequests)), bytes: semaphore.NewWeighted(int64(t.opt.QueueBytes)),
	}
	a.q.format = t.frameFormat
	defer a.done.Wait()
	cut := func() bool {
		p := t.peer(in.key.from)
		return p != nil && p.cut()
	}
	p := pump{q: a.q, conn: in.conn, timing: &t.timing, counted: in.counted, fault: cut, tls: t.opt.TLS != nil}
	a.done.Go(func() {
		in.end(p.run(in.ctx))
		a.q.discard()
	})
	err := a.read()
	t.complain(in, err)
	in.end(err)
	return err
}

func (a *answerer) read() error {
	r := a.t.newReader(a.in.ctx, a.in.conn, a.t.opt.MaxFrameBytes, a.in.counted)
	for {
		h, b, err := r.frame()
		switch {
		case err != nil:
			return err
		case h.kind == kindCancel:
			a.mu.Lock()
			if cancel := a.running[h.stream]; cancel != nil {
				cancel()
			}
			a.mu.Unlock()
		case h.kind == kindRequest && len(b) >= 8:
			if err := a.begin(h.stream, b); err != nil {
				return err
			}
		default:
			return &FrameError{fmt.Sprintf("kind %d of %d bytes where requests are expected", h.kind, len(b))}
		}
	}
}

// begin runs the handler for a request, when there is space.
func (a *answerer) begin(id uint32, b []byte) error {
	left := time.Duration(binary.LittleEndian.Uint64(b))
	if left < 0 || left > time.Hour {
		left = time.Hour
	}
	weight := int64(min(len(b), a.t.opt.QueueBytes))
	if err := errors.Join(a.count.Acquire(a.in.ctx, 1), a.bytes.Acquire(a.in.ctx, weight)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(a.in.ctx, left)
	a.mu.Lock()
	_, twice := a.running[id]
	a.running[id] = cancel
	a.mu.Unlock()
	if twice {
		cancel()
		return &FrameError{fmt.Sprintf("request %d twice", id)}
	}
	a.done.Go(func() {
		a.answer(ctx, id, b[8:])
		a.mu.Lock()
		delete(a.running, id)
		a.mu.Unlock()
		cancel()
		a.bytes.Release(weight)
		a.count.Release(1)
	})
	return nil
}

func (a *answerer) answer(ctx context.Context, id uint32, request []byte) {
	body, err := a.t.opt.Handler.HandleRequest(ctx, a.in.key.from, request)
	kind := kindAnswer
	if limit := a.t.opt.MaxFrameBytes; err == nil && len(body) > limit {
		err = &SizeError{"answer", len(body), limit}
	}
	if err != nil {
		text := err.Error()
		kind, body = kindFailure, []byte(text[:min(len(text), maxErrorText)])
	}
	if !a.q.put(kind, id, body) {
		a.in.end(fmt.Errorf("%d bytes of answers are not being read: %w", a.q.bytes(), ErrBusy))
	}
}

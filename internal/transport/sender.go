package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// sender keeps one stream's connection to a peer and writes what is queued for it.
//
// A queue is emptied whenever its connection breaks or cannot be made: old frames are worth less
// than their space, and frames of two connections are never mixed. So after a reconnection the
// peer gets what was sent since the last attempt, about the last second at most.
type sender struct {
	peer   *peer
	stream uint32
	ctx    context.Context // ends when the peer is removed or the stream forgotten, with the cause
	cancel context.CancelCauseFunc
	q      *queue
	kick   chan struct{} // connect now rather than later

	mu   sync.Mutex
	addr string                  // the connection's, or ""
	end  context.CancelCauseFunc // ends the connection
	emu  bool                    // the connection can be delayed
}

func newSender(p *peer, stream uint32) *sender {
	s := &sender{
		peer: p, stream: stream, kick: make(chan struct{}, 1),
		q: newQueue(p.t.opt.QueueBytes, p.t.opt.TLS != nil),
	}
	s.q.format = p.t.frameFormat
	s.ctx, s.cancel = context.WithCancelCause(p.ctx)
	return s
}

// run connects, and connects again, until the peer is removed or the stream forgotten.
func (s *sender) run() {
	tm := &s.peer.t.timing
	lived, failing := false, false
	defer func() {
		s.cancel(nil)
		s.discard()
		s.peer.state.ended(lived, failing && !lived)
	}()
	pause := time.Duration(0)
	for attempt := 0; s.ctx.Err() == nil; {
		began := time.Now()
		addr, err := s.peer.addr(s.stream, attempt)
		if err == nil {
			lived, err = s.connect(addr, failing)
		}
		if s.ctx.Err() != nil {
			return
		}
		settled := lived && time.Since(began) > tm.settled
		s.discard()
		s.peer.state.lost(err, lived, failing && !lived)
		if !lived {
			s.peer.missed(addr, err)
			attempt++
		}
		lived, failing = false, true
		if settled {
			pause = 0
			continue // at once: the peer may have restarted
		}
		pause = min(max(2*pause, tm.backoff), tm.maxPause)
		if s.sleep(jitter(pause)) {
			pause = 0
		}
	}
}

// jitter spreads d over ±25 %, so that members do not come all at once.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}

// sleep waits. It returns true if there is a reason to try earlier.
func (s *sender) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.kick:
		return true
	case <-s.ctx.Done():
	}
	return false
}

func (s *sender) discard() { s.peer.counted.drops.Add(int64(s.q.discard())) }

// connect makes a connection to an address and writes to it until it ends. It returns whether there was
// one, and why it ended or could not be made.
func (s *sender) connect(addr string, failing bool) (lived bool, err error) {
	conn, err := s.peer.dial(s.peer.ctx, addr, forFrames, s.stream)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	unhook := context.AfterFunc(ctx, func() { hangUp(conn) })
	defer unhook()
	s.set(addr, cancel, isShaped(conn))
	if !slices.Contains(*s.peer.addrs.Load(), addr) { // the peer moved since the connection was begun
		err := &LinkError{Peer: s.peer.id, Op: "dial " + addr, Err: errors.New("the peer is elsewhere now")}
		s.set("", nil, false)
		cancel(err)
		return false, err
	}
	if s.peer.t.shaper.on() { // since the handshake began, perhaps
		s.makeShapeable()
	}
	s.peer.state.connected(failing)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		cancel(watch(conn, s.peer.id))
	}()
	p := pump{
		q: s.q, conn: conn, timing: &s.peer.t.timing, counted: s.peer.counted,
		fault: s.peer.cut, tls: s.peer.t.opt.TLS != nil,
	}
	cancel(p.run(ctx))
	hangUp(conn)
	<-watched
	s.set("", nil, false)
	return true, &LinkError{Peer: s.peer.id, Op: "send", Sent: true, Err: context.Cause(ctx)}
}

// watch waits until the peer ends the connection. The peer sends nothing on it but the reason.
func watch(conn net.Conn, peer uint64) error {
	b := make([]byte, replySize)
	if _, err := io.ReadFull(conn, b); err != nil {
		if err == io.EOF {
			return fmt.Errorf("closed by the peer: %w", err)
		}
		return err
	}
	if r, ok := decodeReply(b); ok {
		return &HandshakeError{Peer: peer, Addr: conn.RemoteAddr().String(), Reason: r.reason, ByPeer: true}
	}
	return &FrameError{fmt.Sprintf("unexpected % x from the receiving side", b[:8])}
}

func (s *sender) set(addr string, end context.CancelCauseFunc, emu bool) {
	s.mu.Lock()
	s.addr, s.end, s.emu = addr, end, emu
	s.mu.Unlock()
}

// moved ends the connection if its address is not among the peer's.
func (s *sender) moved(addrs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil && !slices.Contains(addrs, s.addr) {
		s.end(fmt.Errorf("the peer moved from %s", s.addr))
	}
}

// drop ends the connection, if there is one.
func (s *sender) drop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end(err)
	}
}

// makeShapeable ends the connection if it cannot be delayed.
func (s *sender) makeShapeable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil && !s.emu {
		s.end(fmt.Errorf("made anew to be delayed: %w", ErrCut))
	}
}

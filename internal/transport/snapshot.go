package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"time"
)

// A snapshot is a frame with its meta, then chunks, each with its checksum, then a frame
// with the length and the checksum of everything. The receiver's last frame says that its
// handler has returned nil, or the error; until then both sides ping, so that a slow disk
// is not taken for a dead member.
const (
	snapshotChunk = 256 << 10
	maxSnapMeta   = 64 << 20 // memberships and sessions of many instances
	snapFrame     = max(4+snapshotChunk, maxSnapMeta)
)

// errVerdict stops the writing of a snapshot for which the receiver has already answered.
var errVerdict = errors.New("transport: the receiver has decided")

// SendSnapshot streams a snapshot to a peer on a connection of its own, and returns when the
// peer's HandleSnapshot has returned nil. body writes the snapshot; its writer blocks while the
// receiver does, and fails when ctx ends or the receiver has already decided (body should return
// that error). *RemoteError: the handler's error. *LinkError: the connection; if Sent, the handler
// may have run. Retrying is always safe.
func (t *Transport) SendSnapshot(ctx context.Context, to uint64, meta []byte, body func(io.Writer) error) error {
	p := t.peer(to)
	if p == nil {
		return &LinkError{Peer: to, Op: "snapshot", Err: ErrUnknownPeer}
	}
	if len(meta) > maxSnapMeta {
		return &LinkError{Peer: to, Op: "snapshot", Err: &SizeError{"snapshot's meta", len(meta), maxSnapMeta}}
	}
	if !t.enterCall() {
		return &LinkError{Peer: to, Op: "snapshot", Err: ErrClosed}
	}
	defer t.done.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })()
	conn, err := p.dialAny(ctx, forSnapshot, 0)
	if err != nil {
		return err
	}
	s := &snapSender{p: p, conn: conn, ctx: ctx, cancel: cancel, pace: pacer{rate: t.opt.SnapshotBytesPerSecond}}
	return s.run(meta, body)
}

// enterCall makes Close wait until t.done.Done is called; false if it is too late.
func (t *Transport) enterCall() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.done.Add(1)
	return true
}

// dialAny tries all of the peer's addresses, first that of a stream: a card may be down.
func (p *peer) dialAny(ctx context.Context, what purpose, stream uint32) (net.Conn, error) {
	var last error
	for i := range max(1, len(*p.addrs.Load())) {
		addr, err := p.addr(stream, i)
		if err != nil {
			return nil, &LinkError{Peer: p.id, Op: "dial", Err: err}
		}
		conn, err := p.dial(ctx, addr, what, stream)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		last = err
	}
	return nil, last
}

// snapSender is a snapshot in flight out.
type snapSender struct {
	p      *peer
	conn   net.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	pace   pacer

	mu    sync.Mutex // held while a frame is written
	wrote time.Time  // when the last one was
}

// run streams and waits for the receiver's answer. If there is one, it counts, whatever else went
// wrong.
func (s *snapSender) run(meta []byte, body func(io.Writer) error) error {
	unhook := context.AfterFunc(s.ctx, func() { hangUp(s.conn) })
	defer unhook()
	verdict := make(chan answer, 1)
	var others sync.WaitGroup
	others.Go(func() {
		a, err := s.readVerdict()
		if err == nil {
			verdict <- a
			err = errVerdict
		}
		s.cancel(err)
	})
	others.Go(s.ping)
	err := s.stream(meta, body)
	if err == nil {
		err = s.awaitEnd(s.p.t.timing.ack)
	} else if s.ctx.Err() == nil && isLink(err) {
		_ = s.awaitEnd(s.p.t.timing.linger) // the verdict may be the reason
	}
	s.cancel(err)
	hangUp(s.conn)
	others.Wait()
	select {
	case a := <-verdict:
		return a.err
	default:
	}
	if !isLink(err) {
		return err // body's own
	}
	return &LinkError{Peer: s.p.id, Op: "snapshot", Sent: true, Err: context.Cause(s.ctx)}
}

// writeError marks an error of the connection, as opposed to an error of body.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

func isLink(err error) bool {
	var w writeError
	return errors.As(err, &w)
}

// awaitEnd waits until the verdict, or the end of the connection.
func (s *snapSender) awaitEnd(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return writeError{context.Cause(s.ctx)}
	case <-timer.C:
		return writeError{fmt.Errorf("no verdict after %v", limit)}
	}
}

// stream writes everything.
func (s *snapSender) stream(meta []byte, body func(io.Writer) error) error {
	if err := s.write(kindSnapMeta, nil, meta); err != nil {
		return err
	}
	w := &chunkWriter{s: s, buf: make([]byte, 0, snapshotChunk)}
	if err := body(w); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint64(nil, uint64(w.total))
	return s.write(kindSnapEnd, nil, binary.LittleEndian.AppendUint32(end, w.sum))
}

// write sends a frame made of two parts, under a deadline.
func (s *snapSender) write(kind frameKind, a, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return writeError{context.Cause(s.ctx)}
	}
	if s.p.cut() {
		return writeError{ErrCut}
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.p.t.timing.stall)); err != nil {
		return writeError{err}
	}
	head := appendHeader(make([]byte, 0, headerSize+4),
		header{kind: kind, length: uint32(len(a) + len(b)), format: s.p.t.frameFormat()})
	bufs := net.Buffers{append(head, a...), b}
	n, err := bufs.WriteTo(s.conn)
	s.p.counted.wrote(int(n))
	s.wrote = time.Now()
	if err != nil {
		return writeError{err}
	}
	s.p.counted.framesOut.Add(1)
	return nil
}

// ping shows the receiver that the sender is alive while body produces nothing.
func (s *snapSender) ping() {
	every(s.ctx, s.p.t.timing.ping, func() {
		if s.mu.TryLock() {
			idle := time.Since(s.wrote) >= s.p.t.timing.ping
			s.mu.Unlock()
			if idle {
				if err := s.write(kindPing, nil, nil); err != nil {
					_ = s.awaitEnd(s.p.t.timing.linger) // the verdict may be the reason
					s.cancel(err)
				}
			}
		}
	})
}

// every calls f until ctx ends.
func every(ctx context.Context, d time.Duration, f func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// readVerdict waits for the receiver's last frame.
func (s *snapSender) readVerdict() (answer, error) {
	r := s.p.t.newReader(s.p.ctx, s.conn, maxErrorText, s.p.counted)
	h, b, err := r.frame()
	switch {
	case err == io.EOF:
		return answer{}, writeError{fmt.Errorf("closed by the peer: %w", err)}
	case err != nil:
		return answer{}, writeError{err}
	case h.kind == kindSnapDone:
		return answer{}, nil
	case h.kind == kindFailure:
		return answer{err: &RemoteError{s.p.id, string(b)}}, nil
	}
	return answer{}, writeError{&FrameError{fmt.Sprintf("kind %d where a verdict is expected", h.kind)}}
}

// chunkWriter cuts a body into chunks.
type chunkWriter struct {
	s     *snapSender
	buf   []byte
	total int64
	sum   uint32
}

func (w *chunkWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		k := min(len(b), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, b[:k]...)
		b = b[k:]
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return n - len(b), err
			}
		}
	}
	return n, nil
}

func (w *chunkWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if err := w.s.pace.wait(w.s.ctx, len(w.buf)); err != nil {
		return writeError{err}
	}
	var sum [4]byte
	binary.LittleEndian.PutUint32(sum[:], crc32.Checksum(w.buf, castagnoli))
	w.sum = crc32.Update(w.sum, castagnoli, w.buf)
	w.total += int64(len(w.buf))
	err := w.s.write(kindSnapChunk, sum[:], w.buf)
	w.buf = w.buf[:0]
	return err
}

// pacer bounds a rate in bytes per second; 0 is none.
type pacer struct {
	rate int64
	next time.Time
}

// wait waits until n bytes may be sent.
func (p *pacer) wait(ctx context.Context, n int) error {
	if p.rate <= 0 {
		return nil
	}
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	d := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

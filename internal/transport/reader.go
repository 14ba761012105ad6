package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/sys"
)

const (
	readBuffer = 64 << 10
	// largeFrame is the size from which on a frame counts against what may be received from a member at a
	// time, and firstBytes up to which a frame gets its memory before any of it has come.
	largeFrame = 64 << 10
	firstBytes = 1 << 20
)

// reader reads frames from a connection: many small ones with one read, and the body of a large
// one directly into its memory. A header is only a claim: a frame gets much memory when its bytes come.
type reader struct {
	ctx     context.Context // ends waiting for other frames of the member
	conn    net.Conn
	limit   int           // of a body
	format  func() byte   // the newest format of frames that may come, as in a header; nil: the first one
	idle    time.Duration // without a byte
	until   time.Time     // the deadline that is set
	counted *counters
	buf     []byte
	r, w    int // buf[r:w] is read, not yet consumed
}

func newReader(ctx context.Context, conn net.Conn, limit int, idle time.Duration, c *counters) *reader {
	return &reader{ctx: ctx, conn: conn, limit: limit, idle: idle, counted: c, buf: make([]byte, readBuffer)}
}

// newReader reads frames up to the format that this member writes.
func (t *Transport) newReader(ctx context.Context, conn net.Conn, limit int, c *counters) *reader {
	r := newReader(ctx, conn, limit, t.timing.idle, c)
	r.format = t.frameFormat
	return r
}

// read reads something, under the idle deadline.
func (r *reader) read(b []byte) (int, error) {
	now := time.Now()
	r.counted.waits.Store(now.UnixNano())
	if r.until.Sub(now) < r.idle*3/4 {
		r.until = now.Add(r.idle)
		if err := r.conn.SetReadDeadline(r.until); err != nil {
			return 0, err
		}
	}
	n, err := r.conn.Read(b)
	r.counted.read(n)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("nothing came for %v: %w", r.idle, err)
	}
	return 0, err
}

// header reads the next header. A connection that ends between frames is io.EOF.
func (r *reader) header() (header, error) {
	for r.w-r.r < headerSize {
		if r.r > 0 {
			copy(r.buf, r.buf[r.r:r.w])
			r.w -= r.r
			r.r = 0
		}
		n, err := r.read(r.buf[r.w:])
		if err != nil {
			return header{}, r.within(err)
		}
		r.w += n
	}
	h, err := parseHeader(r.buf[r.r:r.r+headerSize], r.limit)
	if err == nil && h.format > 0 && (r.format == nil || h.format > r.format()) {
		err = &FrameError{fmt.Sprintf("format %d, which the sender did not write in the handshake",
			format.First+int(h.format))}
	}
	r.r += headerSize
	if r.r == r.w {
		r.r, r.w = 0, 0
	}
	return h, err
}

// within makes an end inside a frame differ from an end between frames.
func (r *reader) within(err error) error {
	if err == io.EOF && r.w > r.r {
		return io.ErrUnexpectedEOF
	}
	return err
}

// body fills dst from the connection.
func (r *reader) body(dst []byte) error {
	n := copy(dst, r.buf[r.r:r.w])
	r.r += n
	if r.r == r.w {
		r.r, r.w = 0, 0
	}
	for n < len(dst) {
		m, err := r.read(dst[n:])
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		n += m
	}
	return nil
}

// frame reads the next frame that is not a ping, into memory of its own.
func (r *reader) frame() (header, []byte, error) {
	for {
		h, err := r.header()
		if err != nil {
			return h, nil, err
		}
		if h.kind == kindPing {
			if h.length != 0 {
				return h, nil, &FrameError{"ping with a body"}
			}
			continue
		}
		r.counted.framesIn.Add(1)
		b, err := r.grown(int(h.length))
		return h, b, err
	}
}

// grown reads a body into memory of its own. A large one waits until the other large ones that are coming from the same
// member leave space for it, and one that is larger than firstBytes until some of it has come.
func (r *reader) grown(n int) ([]byte, error) {
	if n >= largeFrame && r.counted.coming != nil {
		if err := r.counted.coming.Acquire(r.ctx, int64(n)); err != nil {
			return nil, context.Cause(r.ctx)
		}
		defer r.counted.coming.Release(int64(n))
	}
	if n > firstBytes {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	b := sys.Uncleared(n)
	return b, r.body(b)
}

// fill reads until the buffer is full.
func (r *reader) fill() error {
	r.w = copy(r.buf, r.buf[r.r:r.w])
	r.r = 0
	for r.w < len(r.buf) {
		n, err := r.read(r.buf[r.w:])
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		r.w += n
	}
	return nil
}

// readFrames hands a stream's frames to the handler, in order.
func (t *Transport) readFrames(in *inbound) error {
	r := t.newReader(in.ctx, in.conn, t.opt.MaxFrameBytes, in.counted)
	for {
		h, b, err := r.frame()
		if err == nil && (h.kind != kindFrame || h.stream != in.key.stream) {
			err = &FrameError{fmt.Sprintf("kind %d of stream %d on the connection of stream %d", h.kind, h.stream,
				in.key.stream)}
		}
		if err != nil {
			t.complain(in, err)
			return err
		}
		if in.ctx.Err() != nil {
			return nil
		}
		t.opt.Handler.HandleFrame(in.key.from, in.key.stream, b)
	}
}

// complain logs why a connection ended, if that is unusual.
func (t *Transport) complain(in *inbound, err error) {
	if in.ctx.Err() != nil || err == io.EOF {
		return
	}
	if ok, skipped := t.strange.allow(); ok {
		t.log.Warn("incoming connection failed", "member", hexID(in.key.from), "addr", in.conn.RemoteAddr(),
			"for", in.key.what, "stream", in.key.stream, "err", err, "not_logged", skipped)
	}
}

package transport

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	packet       = 1460             // bytes that are lost together
	minPiece     = 1 << 10          // a card is reserved in pieces, so that streams take turns
	maxPiece     = 64 << 10         //
	pieceTime    = time.Millisecond // about what a piece takes
	cardQueue    = 3 * time.Millisecond
	lineBytes    = 64 << 20 // may be in progress on a connection, as a TCP window
	ackTimeout   = 200 * time.Millisecond
	fastRetransm = 3 // packets behind a lost one that make its loss known within a round trip
)

// shapedConn delays what is written. Writers wait for the card; a line carries the bytes to
// the socket when the emulated network would have.
type shapedConn struct {
	net.Conn
	s      *shaper
	stream uint32        // which card it uses
	to     atomic.Uint64 // the other member; 0: not known yet
	extra  func() time.Duration
	wake   chan struct{} // the line has something new
	room   chan struct{} // the line has become shorter
	closed chan struct{}

	writing sync.Mutex // one Write at a time
	random  *rand.Rand // under writing

	mu     sync.Mutex
	line   []parcel // by due
	bytes  int      // in line or being delivered; ≤ lineBytes + a piece
	last   time.Time
	shut   bool // Close was called
	broken error
}

func newShapedConn(s *shaper, raw net.Conn, stream uint32, to uint64, extra func() time.Duration) *shapedConn {
	c := &shapedConn{
		Conn: raw, s: s, stream: stream, extra: extra, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		closed: make(chan struct{}), random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	c.to.Store(to)
	if !s.t.spawn(c.deliver) {
		c.fail(ErrClosed)
		raw.Close()
	}
	return c
}

// parcel is bytes that arrive together.
type parcel struct {
	data []byte
	due  time.Time
}

// Write returns when all of b is in flight: the card has almost got to its end. Write deadlines do
// not apply; the socket's own are kept by deliver.
func (c *shapedConn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	data := append([]byte(nil), b...)
	for at := 0; at < len(data); {
		shape := c.s.now.Load()
		way, card := shape.to(c.to.Load()), shape.card(c.stream)
		if c.extra != nil {
			extra := c.extra()
			way.Latency += extra
			way.roundTrip += extra
		}
		n := min(len(data)-at, shape.piece)
		now := time.Now()
		due := now
		late, again := c.lose(&way, n, len(data)-at-n)
		if card != nil {
			due = card.reserve(now, n+again)
		}
		if err := c.push(data[at:at+n], due.Add(c.delay(&way)+late)); err != nil {
			return at, err
		}
		if err := c.await(due.Add(-cardQueue)); err != nil {
			return at, err
		}
		at += n
	}
	return len(b), nil
}

// delay draws the latency of a piece.
func (c *shapedConn) delay(w *way) time.Duration {
	d := w.Latency
	if j := w.Jitter; j > 0 {
		d += time.Duration(c.random.Int64N(2*int64(j)+1)) - j
	}
	return max(d, 0)
}

// lose draws whether a packet of a piece of n bytes, with more behind it, is lost: how late that makes it and how many
// bytes are sent again. TCP loses nothing, it arrives late: a loss delays its packet and all that follow it on the
// connection by a round trip if at least three packets of the same write follow, which is what a fast retransmission
// takes, else by a round trip and 200 ms, which is how long a sender waits for an acknowledgement. The packet sent
// again costs egress. That TCP slows down after a loss is not modelled.
func (c *shapedConn) lose(w *way, n, more int) (late time.Duration, again int) {
	if w.Loss <= 0 || w.Cut() { // a link that is cut loses what would be written here
		return 0, 0
	}
	packets := (n + packet - 1) / packet
	if c.random.Float64() < math.Pow(1-w.Loss/100, float64(packets)) {
		return 0, 0
	}
	late = w.roundTrip
	if behind := c.random.IntN(packets) + more/packet; behind < fastRetransm {
		late += ackTimeout
	}
	return late, min(n, packet)
}

// push appends to the line. It waits while too much is in progress.
func (c *shapedConn) push(b []byte, due time.Time) error {
	for {
		c.mu.Lock()
		if err := c.err(); err != nil {
			c.mu.Unlock()
			return err
		}
		if c.bytes < lineBytes {
			if due.Before(c.last) {
				due = c.last // TCP does not reorder
			}
			c.last = due
			c.line = append(c.line, parcel{b, due})
			c.bytes += len(b)
			c.mu.Unlock()
			notify(c.wake)
			return nil
		}
		c.mu.Unlock()
		select {
		case <-c.room:
		case <-c.closed:
		}
	}
}

// err is why nothing more can be written. mu is held.
func (c *shapedConn) err() error {
	if c.broken != nil {
		return c.broken
	}
	if c.shut {
		return net.ErrClosed
	}
	return nil
}

// await waits until a time, roughly.
func (c *shapedConn) await(until time.Time) error {
	d := time.Until(until)
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

// deliver writes the line to the socket as it falls due, and closes the socket when the connection
// is closed and what was in progress has arrived.
func (c *shapedConn) deliver() {
	defer c.Conn.Close()
	clock, err := newSleeper(c.s.t.ctx)
	if err != nil {
		c.fail(err)
		return
	}
	defer clock.close()
	for c.s.t.ctx.Err() == nil {
		first, ok := c.first()
		if ok {
			if d := time.Until(first); d > 0 && clock.sleep(d) != nil {
				break
			}
			if err := c.arrive(); err != nil {
				c.fail(err)
				return
			}
			continue
		}
		select {
		case <-c.wake:
		case <-c.closed:
			if _, more := c.first(); !more {
				return
			}
		case <-c.s.t.ctx.Done():
		}
	}
	c.fail(ErrClosed)
}

// first returns when the next parcel is due.
func (c *shapedConn) first() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.line) == 0 {
		return time.Time{}, false
	}
	return c.line[0].due, true
}

// arrive writes all that is due.
func (c *shapedConn) arrive() error {
	c.mu.Lock()
	now := time.Now()
	var bufs net.Buffers
	n := 0
	for len(c.line) > 0 && len(bufs) < groupParts && !c.line[0].due.After(now) {
		bufs = append(bufs, c.line[0].data)
		n += len(c.line[0].data)
		c.line[0] = parcel{}
		c.line = c.line[1:]
	}
	c.mu.Unlock()
	if err := c.Conn.SetWriteDeadline(now.Add(c.s.t.timing.write)); err != nil {
		return err
	}
	_, err := bufs.WriteTo(c.Conn)
	c.mu.Lock()
	c.bytes -= n
	c.mu.Unlock()
	notify(c.room)
	return err
}

// fail ends the connection with what is in progress.
func (c *shapedConn) fail(err error) {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = err
	}
	c.line = nil
	c.mu.Unlock()
	c.Close()
}

// Close ends reading at once and writing when what is in progress has arrived.
func (c *shapedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return nil
	}
	c.shut = true
	close(c.closed)
	if err := c.Conn.SetReadDeadline(time.Unix(1, 0)); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Read explains why the connection ended. Close ends reading by a deadline, which is not the reason.
func (c *shapedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if why := c.err(); why != nil {
			err = why
		}
	}
	return n, err
}

func (c *shapedConn) SetReadDeadline(d time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.err(); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(d)
}

func (c *shapedConn) SetWriteDeadline(time.Time) error { return nil }

func (c *shapedConn) SetDeadline(d time.Time) error { return c.SetReadDeadline(d) }

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

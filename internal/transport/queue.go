package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	chunkSize  = 32 << 10 // small parts and headers are copied into chunks
	inlinePart = 2 << 10  // a part up to this size is copied: cheaper than a place in a gathered write
	inlineTLS  = 16 << 10 // with TLS every piece is a record of its own, and copied anyway
	groupBytes = 1 << 20  // about as much is written under one deadline
	groupParts = 1024     // the limit of the kernel for one gathered write
)

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// outFrames is frames laid out for one gathered write.
type outFrames struct {
	bufs   [][]byte           // sealed: pieces of chunks, and large parts by reference
	used   []*[chunkSize]byte // the chunks, to be returned to their pool
	open   []byte             // the chunk being filled, up to its length
	from   int                // where in open the piece that is not sealed begins
	bytes  int
	frames int
}

func (g *outFrames) seal() {
	if g.from < len(g.open) {
		g.bufs = append(g.bufs, g.open[g.from:len(g.open):len(g.open)])
		g.from = len(g.open)
	}
}

// reserve makes open have capacity for n more bytes, n ≤ chunkSize.
func (g *outFrames) reserve(n int) {
	if cap(g.open)-len(g.open) >= n {
		return
	}
	g.seal()
	c := chunks.Get().(*[chunkSize]byte)
	g.used = append(g.used, c)
	g.open, g.from = c[:0], 0
}

func (g *outFrames) add(h header, parts [][]byte, inline int) {
	g.reserve(headerSize)
	g.open = appendHeader(g.open, h)
	for _, p := range parts {
		if len(p) <= inline {
			g.reserve(len(p))
			g.open = append(g.open, p...)
			continue
		}
		g.seal()
		g.bufs = append(g.bufs, p)
	}
	g.bytes += headerSize + int(h.length)
	g.frames++
}

// reset returns the chunks to their pool; nothing may still refer to them.
func (g *outFrames) reset() {
	for i, c := range g.used {
		chunks.Put(c)
		g.used[i] = nil
	}
	clear(g.bufs)
	if cap(g.bufs) > 4*groupParts { // an unusual one
		*g = outFrames{}
		return
	}
	*g = outFrames{bufs: g.bufs[:0], used: g.used[:0]}
}

// queue is what waits to be written to one connection, bounded in bytes.
type queue struct {
	limit  int // bytes
	inline int
	format func() byte   // of frames; nil: 0
	wake   chan struct{} // holds a token when there is something to write

	mu      sync.Mutex
	next    outFrames // filled by put
	size    int       // bytes in next and being written; ≤ limit, or one frame
	waiting bool      // the writer found nothing that cannot wait, and waits for wake
	holding bool      // everything in next may wait until patience fires
	// patience is of the frames that may wait; nil before the first.
	patience *time.Timer
}

// laterBy is how long a frame waits for another one at most.
const laterBy = time.Millisecond

func newQueue(limit int, encrypted bool) *queue {
	q := &queue{limit: limit, inline: inlinePart, wake: make(chan struct{}, 1)}
	if encrypted {
		q.inline = inlineTLS
	}
	return q
}

// put queues a frame whose body is parts. It returns false and keeps nothing when the queue is full. An empty queue
// accepts a frame of any size.
func (q *queue) put(kind frameKind, stream uint32, parts ...[]byte) bool {
	q.mu.Lock()
	ok := q.add(kind, stream, parts)
	poke := ok && q.waiting
	if poke {
		q.waiting = false
	}
	q.mu.Unlock()
	if poke {
		q.wakeUp()
	}
	return ok
}

// putLater is put of a frame that may wait for others, so it does not wake the writer.
func (q *queue) putLater(kind frameKind, stream uint32, parts ...[]byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ok := q.add(kind, stream, parts)
	if ok && q.waiting && !q.holding {
		q.holding = true
		if q.patience == nil {
			q.patience = time.AfterFunc(laterBy, q.flush)
		} else {
			q.patience.Reset(laterBy)
		}
	}
	return ok
}

// flush wakes the writer for frames that have waited long enough.
func (q *queue) flush() {
	q.mu.Lock()
	poke := q.holding && q.waiting
	q.holding = false
	if poke {
		q.waiting = false
	}
	q.mu.Unlock()
	if poke {
		q.wakeUp()
	}
}

func (q *queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add queues a frame, if the queue is not full. q.mu is held.
func (q *queue) add(kind frameKind, stream uint32, parts [][]byte) bool {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if q.size > 0 && q.size+headerSize+n > q.limit {
		return false
	}
	h := header{kind: kind, stream: stream, length: uint32(n)}
	if q.format != nil {
		h.format = q.format()
	}
	q.next.add(h, parts, q.inline)
	q.size += headerSize + n
	return true
}

// swap exchanges the empty g for what is queued.
func (q *queue) swap(g *outFrames) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next.frames == 0 {
		q.waiting = true
		return false
	}
	q.stopHolding()
	q.next.seal()
	*g, q.next = q.next, *g
	return true
}

// stopHolding is called with q.mu held when next is taken.
func (q *queue) stopHolding() {
	if q.holding {
		q.holding = false
		q.patience.Stop()
	}
}

// release frees n bytes of the queue that were written or dropped.
func (q *queue) release(n int) {
	q.mu.Lock()
	q.size -= n
	q.mu.Unlock()
}

// discard empties the queue and returns how many frames were lost.
func (q *queue) discard() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.next.frames
	q.size -= q.next.bytes
	q.stopHolding()
	q.next.reset()
	return n
}

func (q *queue) bytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size
}

// pump writes a queue to a connection.
type pump struct {
	q       *queue
	conn    net.Conn
	timing  *timing
	counted *counters
	fault   func() bool // whether frames are to be lost; may be nil
	tls     bool
	batch   outFrames
	vec     net.Buffers
	until   time.Time // the write deadline that is set
}

// run writes until ctx ends, whose cause it returns, or a write fails. It pings when there
// was nothing to write for a while.
func (p *pump) run(ctx context.Context) error {
	ticker := time.NewTicker(p.timing.ping)
	defer ticker.Stop()
	wrote := false
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.q.swap(&p.batch) {
			wrote = true
			if err := p.write(); err != nil {
				return err
			}
			continue
		}
		select {
		case <-p.q.wake:
		case <-ticker.C:
			if !wrote {
				p.q.put(kindPing, 0)
			}
			wrote = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// write sends the batch in groups, each under a deadline, and frees the queue after each.
func (p *pump) write() (err error) {
	b := &p.batch
	left := b.bytes
	defer func() {
		p.q.release(left)
		if err != nil {
			p.counted.drops.Add(int64(b.frames))
		}
		b.reset()
	}()
	if p.fault != nil && p.fault() {
		p.counted.drops.Add(int64(b.frames))
		return nil
	}
	for at := 0; at < len(b.bufs); {
		end, n := at, 0
		for end < len(b.bufs) && end-at < groupParts && (n == 0 || n+len(b.bufs[end]) <= groupBytes) {
			n += len(b.bufs[end])
			end++
		}
		if err := p.writeGroup(b.bufs[at:end], n); err != nil {
			return err
		}
		p.q.release(n)
		left -= n
		p.counted.wrote(n)
		at = end
	}
	p.counted.framesOut.Add(int64(b.frames))
	return nil
}

// writeGroup writes n bytes. A write that makes progress may take longer than a deadline, except under TLS, where a
// write cannot continue after a timeout.
func (p *pump) writeGroup(bufs [][]byte, n int) error {
	p.vec = bufs
	for {
		if err := p.extend(n); err != nil {
			return err
		}
		wrote, err := p.vec.WriteTo(p.conn)
		if wrote > 0 && !p.tls && errors.Is(err, os.ErrDeadlineExceeded) {
			p.until = time.Time{}
			continue
		}
		return err
	}
}

// extend moves the write deadline, but not for every write.
func (p *pump) extend(n int) error {
	now := time.Now()
	d := p.timing.write
	if p.tls {
		d += time.Duration(n) * time.Second / time.Duration(p.timing.slowest)
	}
	if p.until.Sub(now) > d*3/4 {
		return nil
	}
	p.until = now.Add(d)
	return p.conn.SetWriteDeadline(p.until)
}

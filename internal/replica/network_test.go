package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/transport/netspec"
)

// network connects members in memory, so that a test can run a cluster in one bubble of synctest.
type network struct {
	mu    sync.Mutex
	links map[uint64]*memLinks
	// cut are the disconnected members.
	cut map[uint64]bool
}

func newNetwork() *network {
	return &network{links: map[uint64]*memLinks{}, cut: map[uint64]bool{}}
}

// memLinks are one member's links. They keep the order of frames to a member, and wait in Close until no
// handler runs, as those of package transport do.
type memLinks struct {
	net  *network
	self uint64
	opt  transport.Options

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	queues map[uint64]*memQueue
}

type memQueue struct {
	mu     sync.Mutex
	frames []memFrame
	wake   chan struct{}
}

type memFrame struct {
	stream uint32
	bytes  []byte
}

var errNoLink = errors.New("no link")

func (n *network) join(o transport.Options) (links, error) {
	l := &memLinks{net: n, self: o.Self, opt: o, queues: map[uint64]*memQueue{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[o.Self] = l
	return l, nil
}

// isolate disconnects a member, or connects it again.
func (n *network) isolate(id uint64, cut bool) {
	n.mu.Lock()
	n.cut[id] = cut
	n.mu.Unlock()
}

// find returns the links of a member; nil if there are none or one of the two is disconnected.
func (n *network) find(from, to uint64) *memLinks {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[from] || n.cut[to] {
		return nil
	}
	return n.links[to]
}

// spawn runs f in a goroutine for which Close waits; false if Close has begun.
func (l *memLinks) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.done.Go(f)
	}
	return !l.closed
}

func (l *memLinks) SetPeers(peers []transport.Peer) {
	for _, p := range peers {
		l.mu.Lock()
		q := l.queues[p.ID]
		if q == nil && p.ID != l.self {
			q = &memQueue{wake: make(chan struct{}, 1)}
			l.queues[p.ID] = q
			l.mu.Unlock()
			l.spawn(func() { l.deliver(p.ID, q) })
			if l.net.find(l.self, p.ID) != nil {
				l.spawn(func() { l.opt.Handler.PeerUp(p.ID) })
			}
			continue
		}
		l.mu.Unlock()
	}
}

func (l *memLinks) deliver(to uint64, q *memQueue) {
	for {
		select {
		case <-q.wake:
		case <-l.ctx.Done():
			return
		}
		q.mu.Lock()
		frames := q.frames
		q.frames = nil
		q.mu.Unlock()
		for _, f := range frames {
			l.hand(to, f)
		}
	}
}

// hand calls the handler of another member. If that member closes meanwhile, Close waits for the handler.
func (l *memLinks) hand(to uint64, f memFrame) {
	if other := l.net.find(l.self, to); other != nil {
		handled := make(chan struct{})
		if other.spawn(func() {
			defer close(handled)
			other.opt.Handler.HandleFrame(l.self, f.stream, f.bytes)
		}) {
			<-handled
		}
	}
}

func (l *memLinks) Send(to uint64, stream uint32, parts [][]byte) bool {
	l.mu.Lock()
	q := l.queues[to]
	l.mu.Unlock()
	if q == nil {
		return false
	}
	q.mu.Lock()
	q.frames = append(q.frames, memFrame{stream, bytes.Join(parts, nil)})
	q.mu.Unlock()
	poke(q.wake)
	return true
}

func (l *memLinks) SendLater(to uint64, stream uint32, parts [][]byte) bool {
	return l.Send(to, stream, parts)
}

func (l *memLinks) Request(ctx context.Context, to uint64, request []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	type reply struct {
		bytes []byte
		err   error
	}
	got := make(chan reply, 1)
	other := l.net.find(l.self, to)
	if other == nil || !other.spawn(func() {
		b, err := other.opt.Handler.HandleRequest(ctx, l.self, slices.Clone(request))
		got <- reply{b, err}
	}) {
		return nil, errNoLink
	}
	select {
	case r := <-got:
		return r.bytes, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memLinks) SendSnapshot(ctx context.Context, to uint64, meta []byte, body func(io.Writer) error) error {
	other := l.net.find(l.self, to)
	r, w := io.Pipe()
	verdict := make(chan error, 1)
	if other == nil || !other.spawn(func() {
		err := other.opt.Handler.HandleSnapshot(ctx, l.self, meta, r)
		r.CloseWithError(errors.Join(errNoLink, err))
		verdict <- err
	}) {
		return errNoLink
	}
	for _, end := range []context.Context{ctx, l.ctx, other.ctx} {
		defer context.AfterFunc(end, func() { w.CloseWithError(errNoLink) })()
	}
	err := body(w)
	w.CloseWithError(err) // nil: io.EOF
	return errors.Join(err, <-verdict)
}

func (l *memLinks) Drop(uint64) {}

func (l *memLinks) WriteFormat(int) {}

func (l *memLinks) Probe(context.Context, uint64, []string) error { return nil }

func (l *memLinks) Open(uint32)      {}
func (l *memLinks) Forget(...uint32) {}

func (l *memLinks) SetNet(netspec.Spec) {}

func (l *memLinks) Stats() (s transport.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.queues {
		s.Peers = append(s.Peers, transport.PeerStats{ID: id, Tunes: true, Seals: true,
			Connected: l.net.find(l.self, id) != nil})
	}
	return s
}

func (l *memLinks) Close() error {
	l.net.mu.Lock()
	if l.net.links[l.self] == l {
		delete(l.net.links, l.self)
	}
	l.net.mu.Unlock()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.done.Wait()
	return nil
}

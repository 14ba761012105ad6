package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/transport/netspec"
)

// Peer is a member and where it listens.
type Peer struct {
	ID    uint64
	Addrs []string // host:port, one per network card
	Name  string   // by which Options.Net finds it; empty: no one knows yet
	// Binds are the addresses whose hosts its certificate may name, see Options.TLSBinds; nil: those in Addrs.
	Binds []string
}

// Options of a transport. Self, Cluster and Handler are required.
type Options struct {
	Self, Cluster uint64
	// Settings returns the settings that this member tells in a handshake; nil: none. A link with a member that has others
	// is refused: see [Told]. It is called concurrently, without locks held.
	Settings func() Told
	// Handshake has what handshakes send and check besides.
	Handshake
	// Listen are the listeners, one per network card. Close closes them.
	Listen []net.Listener
	// TLS makes all links mutually authenticated; nil: plain. It is used for both sides,
	// so it needs a certificate and RootCAs (and ClientCAs, which default to RootCAs).
	// Its callbacks (GetCertificate, GetClientCertificate …) are how certificates are
	// changed without a restart. ServerName defaults to the host that is dialed.
	// With InsecureSkipVerify it needs VerifyConnection or VerifyPeerCertificate; with
	// RequireAnyClientCert besides, those alone decide which certificates are accepted.
	TLS *tls.Config
	// TLSBinds: a member that connects must show a certificate that names the host of one of its addresses, if any is
	// known here. So a certificate of the authority is not enough to impersonate any member. It cannot be demanded where
	// members connect with certificates that do not name their hosts.
	TLSBinds bool
	// TLSByAddress is for a cluster that changes from plain links to TLS, or back: addresses that begin with "http://"
	// are dialed plain although there is TLS, and listeners accept both.
	TLSByAddress bool
	// Dial connects to other members; nil: over TCP.
	Dial Dial
	// QueueBytes bounds what waits per (peer, stream); default 64 MiB.
	QueueBytes int
	// MaxFrameBytes bounds a frame, a request and an answer; default 64 MiB.
	MaxFrameBytes int
	// MaxStreams bounds the streams of a peer, per direction; default 1024.
	MaxStreams int
	// MaxRequests bounds the requests in progress with a peer, per direction; default 1024. Their
	// bytes are bounded by QueueBytes. A member that answers bounds what comes over each of its
	// network cards.
	MaxRequests int
	// SnapshotBytesPerSecond bounds the rate of each snapshot sent; 0: no bound.
	SnapshotBytesPerSecond int64
	// Net is the emulation of links; the zero value is none. It affects what this member sends. [Transport.SetNet]
	// changes it.
	Net     netspec.Spec
	Logger  *slog.Logger
	Handler Handler
	// Admit explains why not to accept connections from a member that SetPeers does not list, 0 to
	// accept them; nil: ReasonUnknown. It is called concurrently, without locks held.
	Admit func(id uint64) Reason
	// Unreachable is called when a peer to which no stream is connected did not answer at one of its addresses, or that
	// another process did; nil: not called. It is called concurrently, without locks held.
	Unreachable func(id uint64, err error)
	// Deaf is called when a listener was closed before Close: no member can connect there any more; nil: not called. It
	// is called concurrently, without locks held.
	Deaf func(err error)
	// Answer answers the question of a process that passed TLS and is no member yet, see [Ask]; nil, or a nil answer: it
	// is not known here. It is called concurrently, without locks held.
	Answer func(question []byte) []byte
}

// Handler gets what peers send. Its methods are called concurrently, except where documented otherwise. Close waits
// for them, so they must return, and must not call Close.
type Handler interface {
	// HandleFrame gets a frame, which it owns. Calls are in order per (peer, stream); until
	// it returns, no further frame of the stream is read.
	HandleFrame(from uint64, stream uint32, frame []byte)
	// HandleSnapshot gets a snapshot. ctx ends when the sender is gone, which is noticed soon also while nothing is read.
	// Reading body returns io.EOF only after all of it was received and verified. Returning nil reports to the sender
	// that it arrived, also if body was not read to its end; an error is sent as text.
	HandleSnapshot(ctx context.Context, from uint64, meta []byte, body io.Reader) error
	// HandleRequest answers a request, which it owns. An error is sent as text. ctx ends when the caller no longer waits.
	HandleRequest(ctx context.Context, from uint64, request []byte) ([]byte, error)
	// PeerUp indicates that all streams to a peer that are in use are connected. PeerDown indicates that one of them
	// broke (frames may be lost) or cannot be connected; it is called again when the reason changes. They are called in
	// order per peer, and no more after the peer was removed, except for a call that is in progress.
	PeerUp(id uint64)
	PeerDown(id uint64, err error)
}

// Transport links a member with its peers. Its methods are safe for concurrent use.
type Transport struct {
	opt     Options
	log     *slog.Logger
	format  atomic.Int32 // of frames, see WriteFormat
	timing  timing
	connect Dial
	tlsIn   *tls.Config
	tlsOut  *tls.Config
	shaper  *shaper // emulates links, or nothing
	totals  totals
	strange limiter // of log messages about strangers
	// handshakes bounds waiting.
	handshakes int

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	done   sync.WaitGroup
	peers  atomic.Pointer[map[uint64]*peer] // replaced as a whole, under mu

	mu      sync.Mutex
	closed  bool
	faults  map[uint64]LinkFault
	net     netspec.Spec
	names   map[uint64]string    // of members, this one included, as far as they are known
	waiting []net.Conn           // connections in the handshake, oldest first; ≤ handshakes
	inbound map[inKey]*inbound   // accepted
	guests  map[uint64]*counters // of accepted members that are not peers
}

// New begins to listen. Peers are given by SetPeers.
func New(o Options) (*Transport, error) { return newTransport(o, defaultTiming) }

func newTransport(o Options, tm timing) (*Transport, error) {
	switch {
	case o.Handler == nil:
		return nil, errors.New("transport: Options.Handler is missing")
	case o.QueueBytes < 0 || o.MaxFrameBytes < 0 || o.MaxStreams < 0 || o.MaxRequests < 0 || o.SnapshotBytesPerSecond < 0:
		return nil, errors.New("transport: a limit is negative")
	case o.MaxFrameBytes > 1<<31-1:
		return nil, fmt.Errorf("transport: MaxFrameBytes %d is above 2 GiB", o.MaxFrameBytes)
	}
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.MaxFrameBytes = cmp.Or(o.MaxFrameBytes, 64<<20)
	o.MaxStreams = cmp.Or(o.MaxStreams, 1024)
	o.MaxRequests = cmp.Or(o.MaxRequests, 1024)
	t := &Transport{
		opt: o, log: o.Logger, timing: tm,
		net: o.Net, names: map[uint64]string{}, faults: map[uint64]LinkFault{}, inbound: map[inKey]*inbound{},
		guests: map[uint64]*counters{},
	}
	t.handshakes = maxHandshakes
	if n, ok := sys.Descriptors(); ok {
		t.handshakes = handshakes(n)
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	own, err := t.told()
	if err != nil {
		return nil, err
	}
	t.format.Store(int32(own.Format.orFirst().Written))
	if t.tlsIn, t.tlsOut, err = mutual(o.TLS); err != nil {
		return nil, err
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.connect = o.Dial.within(tm.dial, net.Dialer{KeepAliveConfig: keepAlive, Control: controlSocket})
	t.strange = limiter{every: tm.logEvery, burst: 10}
	t.shaper = &shaper{t: t}
	t.reshape()
	t.peers.Store(&map[uint64]*peer{})
	for i, l := range o.Listen {
		t.spawn(func() { t.listen(uint32(i), l) })
	}
	return t, nil
}

// spawn runs f in a goroutine that Close waits for; false if it is too late for that.
func (t *Transport) spawn(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.done.Go(f)
	return true
}

func (t *Transport) peer(id uint64) *peer { return (*t.peers.Load())[id] }

// SetPeers sets the other members. It connects to new ones and ends the links with those that are not listed. Of this
// member itself it uses only the name. It may be called at any time and does not wait.
func (t *Transport) SetPeers(peers []Peer) {
	for _, p := range t.replacePeers(peers) {
		p.sender(0) // connects at once, so that trouble shows before it matters
	}
	t.endUnadmitted()
}

func (t *Transport) replacePeers(peers []Peer) (fresh []*peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.rename(peers)
	old := *t.peers.Load()
	all := make(map[uint64]*peer, len(peers))
	for _, p := range peers {
		if p.ID == t.opt.Self {
			continue
		}
		if known := old[p.ID]; known != nil {
			all[p.ID] = known
			known.move(p)
			continue
		}
		n := newPeer(t, p)
		if c := t.guests[p.ID]; c != nil { // it was talking before it became a peer
			n.counted = c
			delete(t.guests, p.ID)
		}
		if f, ok := t.faults[p.ID]; ok {
			n.fault.Store(&f)
		}
		all[p.ID] = n
		fresh = append(fresh, n)
	}
	t.peers.Store(&all)
	for id, p := range old {
		if all[id] != p {
			p.cancel(ErrRemoved)
		}
	}
	return fresh
}

// Send queues one frame, made of parts, for a peer's stream. The parts must not change
// until they were written; the slice that lists them is not kept. It never blocks. False:
// the frame is dropped, because there is no such peer, the queue is full, or it is larger
// than MaxFrameBytes. True promises nothing: the connection may break.
func (t *Transport) Send(to uint64, stream uint32, parts [][]byte) bool {
	return t.send(to, stream, parts, (*queue).put)
}

// SendLater is Send of a frame that may wait up to a millisecond, to be written together with the next one.
func (t *Transport) SendLater(to uint64, stream uint32, parts [][]byte) bool {
	return t.send(to, stream, parts, (*queue).putLater)
}

func (t *Transport) send(
	to uint64, stream uint32, parts [][]byte, put func(*queue, frameKind, uint32, ...[]byte) bool,
) bool {
	p := t.peer(to)
	if p == nil {
		return false
	}
	s := p.sender(stream)
	n := 0
	for _, b := range parts {
		n += len(b)
	}
	if s == nil || n > t.opt.MaxFrameBytes || !put(s.q, kindFrame, stream, parts...) {
		p.counted.drops.Add(1)
		return false
	}
	return true
}

// Open begins to connect a stream to all peers, ahead of the first frame. Without it the first frame waits for the
// handshake.
func (t *Transport) Open(stream uint32) {
	for _, p := range *t.peers.Load() { // any order
		p.sender(stream)
	}
}

// Forget ends streams to all peers. Frames in their queues are lost. A stream on which something is
// sent later starts again.
func (t *Transport) Forget(streams ...uint32) {
	for _, p := range *t.peers.Load() { // any order
		p.forget(streams)
	}
}

// Drop ends all connections with a member, in both directions. They are made again if the
// handshake allows it.
func (t *Transport) Drop(id uint64) {
	t.mu.Lock()
	var all []*inbound
	for _, in := range t.inbound {
		if in.key.from == id {
			all = append(all, in)
		}
	}
	t.mu.Unlock()
	for _, in := range all {
		in.end(ErrDropped)
	}
	if p := t.peer(id); p != nil {
		for _, s := range *p.senders.Load() {
			s.drop(ErrDropped)
		}
	}
}

// LinkFault is a fault on the path to a peer, for tests and fault injection.
type LinkFault struct {
	// Drop loses all frames, requests and answers to the peer, and no new connection to
	// it is made. Connections stay until the peer misses the pings.
	Drop bool
	// Delay is added to the latency of everything sent to the peer.
	Delay time.Duration
}

// SetLink puts a fault on the path to a peer; the zero value heals it. Only what this member sends
// to the peer is affected, not what it receives.
func (t *Transport) SetLink(to uint64, f LinkFault) {
	t.mu.Lock()
	t.faults[to] = f
	p := t.peer(to)
	t.mu.Unlock()
	if p == nil {
		return
	}
	p.fault.Store(&f)
	if f.Delay > 0 {
		p.makeShapeable()
	}
	if !f.Drop {
		p.retry()
	}
}

// Close ends all links and waits until no handler is running any more. Queued frames are lost.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.done.Wait()
		return nil
	}
	t.closed = true
	t.cancel(ErrClosed)
	waiting := slices.Clone(t.waiting)
	inbound := maps.Clone(t.inbound)
	t.mu.Unlock()
	var errs []error
	for _, l := range t.opt.Listen {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, c := range waiting {
		c.Close()
	}
	for _, in := range inbound {
		in.end(ErrClosed)
	}
	t.done.Wait()
	return errors.Join(errs...)
}

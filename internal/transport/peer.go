package transport

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/format"
)

// peer is the way to one member.
type peer struct {
	t       *Transport
	id      uint64
	ctx     context.Context // ends when the peer is removed, with the cause
	cancel  context.CancelCauseFunc
	counted *counters
	state   linkState
	calls   caller
	fault   atomic.Pointer[LinkFault]
	tunes   atomic.Bool  // its version knows profiles, as its last handshake showed
	seals   atomic.Bool  // its version knows seals
	newest  atomic.Int32 // the newest format that it knows, as its last handshake showed
	addrs   atomic.Pointer[[]string]
	binds   atomic.Pointer[[]string]

	// senders is replaced as a whole, under mu, so that Send need not lock.
	mu      sync.Mutex
	senders atomic.Pointer[map[uint32]*sender]
}

func newPeer(t *Transport, p Peer) *peer {
	n := &peer{t: t, id: p.ID, counted: t.newCounters()}
	n.ctx, n.cancel = context.WithCancelCause(t.ctx)
	n.state = linkState{peer: n, since: time.Now()}
	n.newest.Store(format.First)
	n.calls.peer = n
	n.senders.Store(&map[uint32]*sender{})
	n.place(p)
	return n
}

// sender returns the sender for a stream. It makes one, which begins to connect, if there is none;
// nil if the peer is gone or has too many.
func (p *peer) sender(stream uint32) *sender {
	if s := (*p.senders.Load())[stream]; s != nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.senders.Load()
	if s := old[stream]; s != nil {
		return s
	}
	if len(old) >= p.t.opt.MaxStreams {
		return nil
	}
	s := newSender(p, stream)
	if !p.t.spawn(s.run) {
		return nil
	}
	all := maps.Clone(old)
	all[stream] = s
	p.senders.Store(&all)
	return s
}

// forget ends streams.
func (p *peer) forget(streams []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := maps.Clone(*p.senders.Load())
	for _, id := range streams {
		if s := all[id]; s != nil {
			s.cancel(ErrForgotten)
			delete(all, id)
		}
	}
	p.senders.Store(&all)
}

// place sets the emulated place of the peer.
func (p *peer) place(to Peer) {
	addrs, binds := slices.Clone(to.Addrs), slices.Clone(to.Binds)
	if len(binds) == 0 {
		binds = addrs
	}
	p.addrs.Store(&addrs)
	p.binds.Store(&binds)
}

// move changes the addresses. Connections to addresses that are no longer listed are replaced.
func (p *peer) move(to Peer) {
	same := slices.Equal(*p.addrs.Load(), to.Addrs)
	p.place(to)
	if same {
		return
	}
	addrs := *p.addrs.Load()
	for _, s := range *p.senders.Load() {
		s.moved(addrs)
	}
	p.retry()
}

// retry ends the pauses between attempts: there is reason to believe that the peer is back.
func (p *peer) retry() {
	for _, s := range *p.senders.Load() {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// noteFeatures notes what a member's version knows.
func (t *Transport) noteFeatures(id uint64, f features) {
	if p := t.peer(id); p != nil {
		p.tunes.Store(f.tunes)
		p.seals.Store(f.seals)
	}
}

// addr is where a stream connects to at an attempt. A stream keeps to its network card
// while that works.
func (p *peer) addr(stream uint32, attempt int) (string, error) {
	addrs := *p.addrs.Load()
	if len(addrs) == 0 {
		return "", &LinkError{Peer: p.id, Op: "dial", Err: errors.New("no address is known")}
	}
	return addrs[(uint64(stream)+uint64(attempt))%uint64(len(addrs))], nil
}

// makeShapeable ends the connections that cannot be delayed; they are reestablished.
func (p *peer) makeShapeable() {
	for _, s := range *p.senders.Load() {
		s.makeShapeable()
	}
}

// cut reports whether what is sent to the peer is to be lost.
func (p *peer) cut() bool {
	if f := p.fault.Load(); f != nil && f.Drop {
		return true
	}
	return p.t.shaper.now.Load().to(p.id).Cut()
}

// extraDelay is what SetLink adds to the path to the peer.
func (p *peer) extraDelay() time.Duration {
	if f := p.fault.Load(); f != nil {
		return f.Delay
	}
	return 0
}

// linkState reports to the handler when a link goes up or down. The link is up while all streams that were used are
// connected: if any breaks, something may be lost.
type linkState struct {
	peer *peer
	tell sync.Mutex // held while the handler is called, so that calls are in order

	mu      sync.Mutex
	live    int // streams that are connected
	failing int // streams that are not, after they were or could not be
	up      bool
	since   time.Time // when up changed, or the peer was listed
	classes []string  // of the errors that were reported, while down
	// breaks counts how often the link went down, failures the attempts to connect that failed.
	breaks, failures int64
	last             error
}

// connected records that a stream is connected; was: it counted as failing.
func (l *linkState) connected(was bool) {
	l.tell.Lock()
	defer l.tell.Unlock()
	l.mu.Lock()
	l.live++
	if was {
		l.failing--
	}
	news := !l.up && l.failing == 0
	if news {
		l.up, l.since, l.classes = true, time.Now(), nil
	}
	l.mu.Unlock()
	if news && l.peer.ctx.Err() == nil {
		l.peer.t.opt.Handler.PeerUp(l.peer.id)
	}
}

// lost notes that a stream is no longer connected (lived) or could not be. The handler is called when the link goes
// down, and once for each other kind of error: a peer may be tried in turn where no one listens and where another
// program does.
func (l *linkState) lost(err error, lived, was bool) {
	l.tell.Lock()
	defer l.tell.Unlock()
	class := errorClass(err)
	l.mu.Lock()
	if lived {
		l.live--
	} else {
		l.failures++
	}
	if !was {
		l.failing++
	}
	news := !slices.Contains(l.classes, class)
	if news {
		l.classes = append(l.classes, class)
	}
	if l.up {
		l.since = time.Now()
		l.breaks++
	}
	l.up, l.last = false, err
	stopped := slices.Contains(l.classes, classStopping)
	l.mu.Unlock()
	if news && l.peer.ctx.Err() == nil {
		l.log(class, stopped, err)
		l.peer.t.opt.Handler.PeerDown(l.peer.id, err)
	}
}

// log logs why the link is down. stopped: the peer has said that it stops. That is no fault, and no one listens at its
// address then.
func (l *linkState) log(class string, stopped bool, err error) {
	log, id := l.peer.t.log, hexID(l.peer.id)
	switch {
	case class == classStopping:
		log.Info("link down, the peer stops", "event", "link-left", "member", id)
	case class == classConnection && stopped:
		log.Debug("link still down", "member", id, "err", linkReason(err))
	default:
		log.Warn("link down", "event", "link-down", "member", id, "err", linkReason(err))
	}
}

// linkReason returns the text of a link's error without the member, which the line of the log has, and with the address
// once.
func linkReason(err error) string {
	var link *LinkError
	if !errors.As(err, &link) {
		return err.Error()
	}
	cause := link.Err
	if dial := (*net.OpError)(nil); errors.As(cause, &dial) && dial.Op == "dial" {
		cause = dial.Err
	}
	return link.Op + ": " + cause.Error()
}

// ended notes that a stream is no longer used. lived: it is connected. was: it counts as failing. The link is up if
// none is left that fails.
func (l *linkState) ended(lived, was bool) {
	l.tell.Lock()
	defer l.tell.Unlock()
	l.mu.Lock()
	if lived {
		l.live--
	}
	if was {
		l.failing--
	}
	news := !l.up && l.failing == 0 && l.live > 0
	if news {
		l.up, l.since, l.classes = true, time.Now(), nil
	}
	l.mu.Unlock()
	if news && l.peer.ctx.Err() == nil {
		l.peer.t.opt.Handler.PeerUp(l.peer.id)
	}
}

// missed reports that the peer did not answer at an address, unless it is connected otherwise or has another address
// by now.
func (p *peer) missed(addr string, err error) {
	p.state.mu.Lock()
	live := p.state.live > 0
	p.state.mu.Unlock()
	if !live && p.t.opt.Unreachable != nil && p.ctx.Err() == nil && slices.Contains(*p.addrs.Load(), addr) {
		p.t.opt.Unreachable(p.id, err)
	}
}

func (l *linkState) describe(s *PeerStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		s.LastError = linkReason(l.last)
	}
	s.Connected, s.Since, s.Tunes, s.Seals = l.up, l.since, l.peer.tunes.Load(), l.peer.seals.Load()
	s.Format = int(l.peer.newest.Load())
	s.Breaks, s.Failures = l.breaks, l.failures
}

// Classes of errors that are logged in their own way.
const (
	classConnection = "connection"
	classStopping   = "stopping"
)

// errorClass groups errors, so that the same problem is reported once.
func errorClass(err error) string {
	var h *HandshakeError
	switch {
	case errors.As(err, &h) && h.Reason == ReasonClosing && h.ByPeer:
		return classStopping
	case errors.As(err, &h):
		return "handshake " + h.Reason.String()
	case errors.Is(err, ErrCut):
		return "cut"
	}
	return classConnection
}

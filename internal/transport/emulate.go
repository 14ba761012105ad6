package transport

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/transport/netspec"
)

// shaper emulates this member's side of all links. What it does can be changed while they are in use.
type shaper struct {
	t   *Transport
	now atomic.Pointer[shape] // replaced as a whole, under Transport.mu
}

// on reports whether anything is emulated.
func (s *shaper) on() bool { return s.now.Load().on }

// shape is the current emulation.
type shape struct {
	on    bool
	ways  map[uint64]way // to peers
	rest  way            // to others
	nics  netspec.Cards
	cards []*card // none: no bound
	piece int     // bytes that are delayed together
}

// way is a link to another member, and its round trip.
type way struct {
	netspec.Link
	roundTrip time.Duration
}

// card is the sending side of a network card: bytes leave one after the other.
type card struct {
	perByte float64 // ns

	mu   sync.Mutex
	free time.Time // when everything reserved will have been sent
}

func newCards(c netspec.Cards) (cards []*card, piece int) {
	if c.Egress == 0 {
		return nil, maxPiece
	}
	perByte := 8e9 / float64(c.Egress)
	for range max(1, c.Number) {
		cards = append(cards, &card{perByte: perByte})
	}
	return cards, min(max(int(float64(pieceTime)/perByte), minPiece), maxPiece)
}

// reserve enters n bytes and returns when the last of them leaves.
func (c *card) reserve(now time.Time, n int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free.Before(now) {
		c.free = now
	}
	c.free = c.free.Add(time.Duration(float64(n) * c.perByte))
	return c.free
}

// to is the path to another member.
func (s *shape) to(id uint64) way {
	if w, ok := s.ways[id]; ok {
		return w
	}
	return s.rest
}

// card is that of a stream; nil: no bound.
func (s *shape) card(stream uint32) *card {
	if len(s.cards) == 0 {
		return nil
	}
	return s.cards[stream%uint32(len(s.cards))]
}

// newShape is a specification from the view of this member. Cards that stay as they are continue with what is reserved
// on them.
func newShape(spec *netspec.Spec, self uint64, names map[uint64]string, before *shape) *shape {
	link := func(peer string) way {
		out := spec.Link(names[self], peer)
		return way{out, out.Latency + spec.Link(peer, names[self]).Latency}
	}
	s := &shape{on: spec.Enabled(), ways: map[uint64]way{}, rest: link(""), nics: spec.Cards(names[self])}
	for id, name := range names {
		if id != self {
			s.ways[id] = link(name)
		}
	}
	if before != nil && before.nics == s.nics {
		s.cards, s.piece = before.cards, before.piece
	} else {
		s.cards, s.piece = newCards(s.nics)
	}
	return s
}

// SetNet changes the emulation. Connections stay open, and later writes are delayed by the new settings. Later bytes
// never overtake earlier ones, so a link becomes faster only when those in transit have arrived. A link that is cut is
// as with [LinkFault.Drop]. If nothing was emulated before, connections are reestablished: those that are there end
// here, and those whose handshake is in progress when it is done.
func (t *Transport) SetNet(spec netspec.Spec) {
	t.mu.Lock()
	was := t.shaper.on()
	t.net = spec
	t.reshape()
	var bare []*inbound
	if !was && spec.Enabled() {
		for _, in := range t.inbound {
			if !isShaped(in.conn) {
				bare = append(bare, in)
			}
		}
	}
	t.mu.Unlock()
	if was || !spec.Enabled() {
		return
	}
	for _, in := range bare {
		in.end(ErrDropped)
	}
	for _, p := range *t.peers.Load() { // any order
		p.makeShapeable()
	}
}

// reshape follows the specification and the members' names. mu is held.
func (t *Transport) reshape() {
	before := t.shaper.now.Load()
	s := newShape(&t.net, t.opt.Self, t.names, before)
	t.shaper.now.Store(s)
	for id := range s.ways { // any order
		if p := t.peer(id); p != nil && before != nil && before.to(id).Cut() && !p.cut() {
			p.retry()
		}
	}
	for id, w := range s.ways { // any order: each is a line of its own
		if before == nil || before.ways[id] != w {
			t.log.Info("link emulated", "member", hexID(id), "name", t.names[id], "region", t.net.Region(t.names[id]),
				"latency", w.Latency, "round_trip", w.roundTrip, "jitter", w.Jitter, "loss_percent", w.Loss)
		}
	}
}

// rename records the names of members from SetPeers. mu is held.
func (t *Transport) rename(peers []Peer) {
	for _, p := range peers {
		if p.Name != "" || p.ID != t.opt.Self { // its own name it does not forget
			t.names[p.ID] = p.Name
		}
	}
	for id := range t.names {
		if id != t.opt.Self && !slices.ContainsFunc(peers, func(p Peer) bool { return p.ID == id }) {
			delete(t.names, id)
		}
	}
	if t.net.Enabled() {
		t.reshape()
	}
}

// wrap puts the emulation under a connection to a member (0: its id is not known yet). extra (may be nil) is added to
// its latency.
func (s *shaper) wrap(raw net.Conn, stream uint32, to uint64, extra func() time.Duration) net.Conn {
	if !s.on() && (extra == nil || extra() == 0) {
		return raw
	}
	return newShapedConn(s, raw, stream, to, extra)
}

func shapedOf(c net.Conn) (*shapedConn, bool) {
	for n, ok := c.(interface{ NetConn() net.Conn }); ok; n, ok = c.(interface{ NetConn() net.Conn }) { // TLS
		c = n.NetConn()
	}
	shaped, ok := c.(*shapedConn)
	return shaped, ok
}

func isShaped(c net.Conn) bool {
	_, ok := shapedOf(c)
	return ok
}

// identify sets the peer of an accepted connection.
func identify(c net.Conn, peer uint64) {
	if shaped, ok := shapedOf(c); ok {
		shaped.to.Store(peer)
	}
}

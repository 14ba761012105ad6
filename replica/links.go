package replica

import (
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
)

// links is what a member needs of package transport.
type links interface {
	SetPeers([]transport.Peer)
	Send(to uint64, stream uint32, parts [][]byte) bool
	Request(ctx context.Context, to uint64, request []byte) ([]byte, error)
	SendSnapshot(ctx context.Context, to uint64, meta []byte, body func(io.Writer) error) error
	Drop(id uint64)
	Stats() transport.Stats
	Close() error
}

// HandleFrame implements transport.Handler. It drops a frame that no member would send. Nothing more
// is needed: links may lose frames, and the protocol repeats its messages.
func (r *Replica) HandleFrame(from uint64, _ uint32, frame []byte) {
	m, err := protocol.DecodeMessage(frame)
	switch {
	case err != nil:
		r.log.Warn("frame dropped", "from", protocol.MemberID(from), "err", err)
	case m.From != protocol.MemberID(from) || m.To != r.opt.Self:
		r.log.Warn("message for someone else dropped", "link", protocol.MemberID(from), "from", m.From, "to", m.To, "instance", m.Instance)
	case r.bodies.handle(m):
	default:
		// The member does not host the instance yet, or not any more.
		if l := r.hosted(m.Instance); l != nil && !l.input(m, len(frame)) {
			r.metrics.dropped.Add(1)
		}
	}
}

// HandleRequest implements transport.Handler.
func (r *Replica) HandleRequest(ctx context.Context, from uint64, request []byte) ([]byte, error) {
	return r.answer(ctx, protocol.MemberID(from), request)
}

// PeerUp implements transport.Handler.
func (r *Replica) PeerUp(id uint64) {
	r.log.Info("link up", "member", protocol.MemberID(id))
	r.hears.answered(protocol.MemberID(id))
}

// PeerDown implements transport.Handler. The transport logs the error.
func (r *Replica) PeerDown(id uint64, err error) {
	var refused *transport.HandshakeError
	if errors.As(err, &refused) && refused.ByPeer {
		first := r.first()
		first.do(func() { first.hosted.Departure().Refused(r.opt.Self, protocol.MemberID(id), refused.Reason) })
	}
	for _, l := range r.all() {
		l.input(protocol.Unreachable{Member: protocol.MemberID(id)}, 0)
	}
	r.bodies.unreachable(protocol.MemberID(id))
	r.hears.answered(protocol.MemberID(id))
}

// removedLinger is how long links to removed members are kept, so that these learn of the removal.
const removedLinger = 5 * time.Second

// relink makes the links follow the configurations of all instances.
func (r *Replica) relink(now time.Duration) {
	var configs []protocol.Config
	for _, l := range r.all() {
		configs = append(configs, l.status.Load().Config)
	}
	c := member.Union(configs)
	r.bodies.follow(&c)
	r.learn(&c)
	if len(c.Members) == 0 {
		return // joining: the addresses given at the start are used until the log says others
	}
	r.lmu.Lock()
	defer r.lmu.Unlock()
	for i := range c.Members {
		if m := &c.Members[i]; m.ID != r.opt.Self {
			r.known[m.ID] = knownPeer{addrs: addresses(m.PeerURLs)}
		}
	}
	for id, p := range r.known {
		if c.Find(id) != nil || c.Voter(id) {
			continue
		}
		if p.leftAt == 0 {
			p.leftAt = now
			r.known[id] = p
		} else if now-p.leftAt > removedLinger {
			delete(r.known, id)
		}
	}
	r.setPeers()
}

// knownPeer is a member with a link. leftAt is when it left the configuration; 0: it has not.
type knownPeer struct {
	addrs  []string
	leftAt time.Duration
}

// keepsRetired reports whether any link is kept to a member that has left.
func (r *Replica) keepsRetired() bool {
	r.lmu.Lock()
	defer r.lmu.Unlock()
	for _, p := range r.known {
		if p.leftAt > 0 {
			return true
		}
	}
	return false
}

func (r *Replica) setPeers() {
	peers := make([]transport.Peer, 0, len(r.known))
	for id, p := range r.known {
		peers = append(peers, transport.Peer{ID: uint64(id), Addrs: p.addrs})
	}
	r.links.SetPeers(peers)
}

// addresses turns URLs, as etcd writes them, into host:port. What is no URL stays as it is.
func addresses(urls []string) []string {
	var out []string
	for _, s := range urls {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			out = append(out, u.Host)
		} else {
			out = append(out, s)
		}
	}
	return out
}

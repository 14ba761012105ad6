package replica

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
)

// links is what a member needs of package transport.
type links interface {
	SetPeers([]transport.Peer)
	Send(to uint64, stream uint32, parts [][]byte) bool
	SendLater(to uint64, stream uint32, parts [][]byte) bool
	Request(ctx context.Context, to uint64, request []byte) ([]byte, error)
	SendSnapshot(ctx context.Context, to uint64, meta []byte, body func(io.Writer) error) error
	Drop(id uint64)
	Open(stream uint32)
	Forget(streams ...uint32)
	Probe(ctx context.Context, id uint64, addrs []string) error
	SetNet(netspec.Spec)
	WriteFormat(to int)
	Stats() transport.Stats
	Close() error
}

// HandleFrame implements transport.Handler. It drops a frame that no member would send. Nothing more
// is needed: links may lose frames, and the protocol repeats its messages. lifecycle.Instances decides what becomes of
// messages for instances that this member does not host yet, or not any more.
func (r *Replica) HandleFrame(from uint64, _ uint32, frame []byte) {
	f, err := protocol.OpenFrame(frame)
	if err != nil {
		r.dropped(protocol.MemberID(from), err)
		return
	}
	if f.From() != protocol.MemberID(from) || f.To() != r.opt.Self {
		r.log.Warn("message for someone else dropped", "link", protocol.MemberID(from), "from", f.From(), "to", f.To(),
			"instance", f.Instance())
		return
	}
	if f.Common() && r.ofBodies(f) {
		return
	}
	l := r.hosted(f.Instance())
	if l == nil {
		hosted := false
		r.imu.Lock()
		l, hosted = r.instances.Receive(f)
		sealed, missing := !hosted && r.instances.Sealed(f.Instance()), protocol.InstanceID(0)
		if !hosted && !sealed {
			missing = r.instances.Behind(f, r.now(), r.tuning().Election)
		}
		r.imu.Unlock()
		switch {
		case sealed:
			r.offerTo(f.From(), f.Instance())
		case missing != 0:
			r.askMissing(f.From(), missing)
		}
		if !hosted {
			return
		}
	}
	r.deliver(l, f)
}

// ofBodies takes a message about bodies, which may be for any instance. It reports false if it is about something else.
func (r *Replica) ofBodies(f protocol.Frame) bool {
	m, err := f.Decode(nil)
	if err != nil {
		r.dropped(f.From(), err)
		return true
	}
	return r.bodies.handle(m)
}

// deliver hands a message to its instance, whose core's codec decodes it.
func (r *Replica) deliver(l *eventLoop, f protocol.Frame) {
	m, err := f.Decode(l.program.Codec)
	switch {
	case err != nil:
		r.dropped(f.From(), err)
	case !l.input(m, len(f)):
		r.metrics.dropped.Add(1)
	}
}

func (r *Replica) dropped(from protocol.MemberID, err error) {
	r.log.Warn("frame dropped", "member", from, "err", err)
}

// HandleRequest implements transport.Handler.
func (r *Replica) HandleRequest(ctx context.Context, from uint64, request []byte) ([]byte, error) {
	return r.answer(ctx, protocol.MemberID(from), request)
}

// PeerUp implements transport.Handler.
func (r *Replica) PeerUp(id uint64) {
	r.log.Info("link up", "event", "link-up", "member", protocol.MemberID(id))
	r.pmu.Lock()
	at, news := r.peers.Up(protocol.MemberID(id))
	r.pmu.Unlock()
	if news {
		r.log.Warn("a member answers at other addresses than before", "member", at.ID, "urls", at.URLs)
	}
	r.who.answered(id)
	r.spawn(func(ctx context.Context) { r.introduce(ctx, protocol.MemberID(id)) })
}

// introduce tells a member where this one is to be found, because that one may not know it.
func (r *Replica) introduce(ctx context.Context, to protocol.MemberID) {
	r.pmu.Lock()
	own := protocol.Member{ID: r.opt.Self, Name: r.nameOf(r.opt.Self), PeerURLs: r.peers.Own()}
	r.pmu.Unlock()
	if len(own.PeerURLs) == 0 {
		return
	}
	self, err := json.Marshal(own)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, r.tuning().GiveUp)
		defer cancel()
		err = r.ask(ctx, to, "link back", append([]byte{askLink}, self...))
	}
	if err != nil && ctx.Err() == nil {
		r.log.Info("a member could not be told where this one is", "member", to, "err", err)
	}
}

// welcome takes in where a member is to be found that has a link to this one.
func (r *Replica) welcome(from protocol.MemberID, m *protocol.Member) {
	r.pmu.Lock()
	defer r.pmu.Unlock()
	if m.ID == from && r.who.admit(uint64(from)) == 0 && r.peers.Welcome(m) {
		r.log.Info("a member has a link and is dialed where it says", "member", from, "urls", m.PeerURLs)
		r.setPeers()
	}
}

// missed is transport.Options.Unreachable.
func (r *Replica) missed(id uint64, err error) {
	r.pmu.Lock()
	defer r.pmu.Unlock()
	if r.peers.Missed(r.now(), protocol.MemberID(id)) {
		r.log.Debug("a member does not answer and is looked for elsewhere", "member", protocol.MemberID(id), "err", err)
		r.setPeers()
	}
}

// PeerDown implements transport.Handler. The transport logs the error.
func (r *Replica) PeerDown(id uint64, err error) {
	r.pmu.Lock()
	r.peers.Down(protocol.MemberID(id))
	r.pmu.Unlock()
	var refused *transport.HandshakeError
	if errors.As(err, &refused) && refused.ByPeer {
		first := r.first()
		first.do(func() { first.hosted.Departure().Refused(r.opt.Self, protocol.MemberID(id), refused.Reason) })
	}
	for _, l := range r.all() {
		l.input(protocol.Unreachable{Member: protocol.MemberID(id)}, 0)
	}
	r.bodies.unreachable(protocol.MemberID(id))
	r.who.answered(id)
}

// relink makes the links follow the configurations of all instances. It reads them with pmu held, so
// that what is newest is followed last.
func (r *Replica) relink(now time.Duration) {
	r.pmu.Lock()
	defer r.pmu.Unlock()
	var latest []protocol.Config
	for _, l := range r.all() {
		latest = append(latest, l.status.Load().Config)
	}
	at, applied := r.apply.at()
	c := member.Linked(latest, applied)
	r.bodies.follow(&c)
	r.who.learn(&c, &applied[0], r.dir.Grown(&at))
	r.tune(&applied[0].Profile)
	r.peers.Follow(now, &c)
	r.followed = c.Members
	r.setPeers()
}

// lingers reports whether any link is kept to a member that has left.
func (p *peering) lingers() bool {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	return p.peers.Lingers()
}

func (r *Replica) setPeers() {
	peers := []transport.Peer{{ID: uint64(r.opt.Self), Name: r.nameOf(r.opt.Self)}}
	for _, p := range r.peers.Peers() {
		peers = append(peers, transport.Peer{
			ID: uint64(p.ID), Name: r.nameOf(p.ID),
			Addrs: addresses(p.URLs, r.opt.TLSByURL), Binds: addresses(p.Vouched, r.opt.TLSByURL),
		})
	}
	r.links.SetPeers(peers)
}

// nameOf is a member's name, by which the emulation of links finds it: as the membership has it, else
// as it was given at the start. pmu is held.
func (r *Replica) nameOf(id protocol.MemberID) string {
	for _, members := range [][]protocol.Member{r.followed, r.opt.Members} {
		if i := slices.IndexFunc(members, func(m protocol.Member) bool { return m.ID == id && m.Name != "" }); i >= 0 {
			return members[i].Name
		}
	}
	return ""
}

// SetNet changes the emulation of links while they are in use. An error says what is wrong with the
// specification; then nothing changes.
func (r *Replica) SetNet(text string) error {
	if r.ctx.Err() != nil {
		return r.stopped()
	}
	spec, err := netspec.Parse(text)
	if err == nil {
		r.links.SetNet(spec)
	}
	return err
}

// addresses turns URLs, as etcd writes them, into host:port. What is no URL stays as it is; so does what
// begins with http://, if TLS depends on that.
func addresses(urls []string, byURL bool) []string {
	var out []string
	for _, s := range urls {
		if u, err := url.Parse(s); err == nil && u.Host != "" && (!byURL || u.Scheme != "http") {
			out = append(out, u.Host)
		} else {
			out = append(out, s)
		}
	}
	return out
}

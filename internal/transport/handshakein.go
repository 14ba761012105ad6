package transport

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// The listening side of a handshake: hello, reply, agreement. There is a link when the agreement was received.

// receive makes the listening side's handshake, from an accepted connection to a link. The connection is registered
// before the peer is accepted, and after an older connection of the same stream has ended. So frames are handled in
// order.
func (t *Transport) receive(conn net.Conn) (*inbound, error) {
	if err := deadline(conn, t.timing.handshake); err != nil {
		return nil, err
	}
	conn, err := t.serverSide(conn)
	if err != nil {
		return nil, err
	}
	h, err := t.readHello(conn)
	identify(conn, h.from)
	if err != nil {
		return nil, t.refuse(conn, &h, err)
	}
	own, err := t.told()
	if err != nil {
		return nil, err
	}
	if err = t.judge(conn, &h, &own); err != nil {
		return nil, t.refuse(conn, &h, err)
	}
	r := t.acceptReply(&h, &own)
	if err := t.bound(conn, h.from); err != nil {
		return nil, err
	}
	in, reason := t.register(&h, conn)
	if reason != 0 {
		return nil, t.refuse(conn, &h, &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: reason})
	}
	if err := t.conclude(conn, &h, r); err != nil {
		t.unregister(in)
		return nil, err
	}
	return in, nil
}

// readHello reads the dialer's first message. A joiner's question is answered, and the connection ends with
// errAnswered.
func (t *Transport) readHello(conn net.Conn) (h hello, err error) {
	addr := conn.RemoteAddr().String()
	b := make([]byte, helloSize)
	// The magic first: a stranger that sends little is detected at once.
	n, err := io.ReadAtLeast(conn, b, headSize)
	if err != nil {
		return h, fmt.Errorf("no handshake from %s: %d bytes, then: %w", addr, n, err)
	}
	if isQuestion(b[:n]) {
		return h, t.answerJoiner(conn, b[:n])
	}
	if binary.LittleEndian.Uint32(b) != helloMagic {
		return h, &HandshakeError{Addr: addr, Reason: ReasonGarbage, Detail: "looks like " + looksLike(b)}
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v == version { // another version's may be shorter
		if _, err := io.ReadFull(conn, b[n:]); err != nil {
			return h, fmt.Errorf("half a handshake from %s: %w", addr, err)
		}
	}
	h, reason, detail := decodeHello(b)
	if reason != 0 {
		return h, &HandshakeError{Peer: h.from, Addr: addr, Reason: reason, Detail: detail}
	}
	if h.text, err = readSettings(conn, h.settings); err != nil {
		return h, fmt.Errorf("half a handshake from %s: %w", addr, err)
	}
	return h, nil
}

// judge returns a *HandshakeError if the sender of h is not accepted.
func (t *Transport) judge(conn net.Conn, h *hello, own *told) error {
	refused := func(reason Reason, detail string) error {
		return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: reason, Detail: detail}
	}
	o := &t.opt
	switch {
	case h.cluster != o.Cluster:
		return refused(ReasonCluster, fmt.Sprintf("cluster %x, this is %x", h.cluster, o.Cluster))
	case h.to != o.Self:
		return refused(ReasonMember, fmt.Sprintf("it looks for member %x, this is %x", h.to, o.Self))
	case h.from == o.Self:
		return refused(ReasonMember, fmt.Sprintf("it claims to be member %x, which this is", h.from))
	}
	if d := t.differ(own, h.text, h.joins, h.learns, h.features); d != "" {
		return refused(ReasonSettings, d)
	}
	if !h.origin.formats { // others say with their last byte which ones they know
		if err := t.checkFormat(h.from, conn, own.Format, Format{}); err != nil {
			return err
		}
	}
	reason := t.admission(h.from)
	if reason != 0 && reason != ReasonLineage {
		return refused(reason, "")
	}
	// Also a member that is refused for its lineage may know this one from before this one lost its disk.
	if err := t.verify(h.from, h.who, h.expects); err != nil {
		return refused(ReasonIdentity, err.Error())
	}
	if reason != 0 {
		return refused(reason, "")
	}
	return nil
}

// refuse sends a dialer why it is refused, if it may know, and returns the error with which the handshake ends.
func (t *Transport) refuse(conn net.Conn, h *hello, err error) error {
	var refused *HandshakeError
	if !errors.As(err, &refused) {
		return err
	}
	r := &reply{reason: refused.Reason}
	switch refused.Reason {
	case ReasonGarbage:
		return err
	case ReasonVersion, ReasonCluster: // a stranger learns nothing about this cluster
	default:
		own, failed := t.told()
		if failed != nil {
			return errors.Join(err, failed)
		}
		r = t.replyTo(h.from, &own, refused.Reason)
		if r.reason == ReasonIdentity || r.reason.Final() { // a refusal that does not count between two logs
			r.origin = h.origin.both(t.originFields())
		}
	}
	conn.Write(t.encodeReply(r)) // best effort: it is refused either way
	if r.reason == ReasonIdentity {
		return t.refusedHere(h, r, conn, err)
	}
	return err
}

// conclude accepts a dialer. There is a link only when the dialer agrees, too. Then the peer is recorded before
// anything is read from the link.
func (t *Transport) conclude(conn net.Conn, h *hello, r *reply) error {
	if _, err := conn.Write(t.encodeReply(r)); err != nil {
		return err
	}
	if err := t.readAgreement(conn, h, r); err != nil {
		return err
	}
	if err := t.linked(h.from, h.who); err != nil {
		return err
	}
	t.noteFeatures(h.from, h.features)
	if r.joins && !h.joins {
		_, birth := birthOf(h.text)
		if err := t.saveBirth(h.from, birth); err != nil {
			return err
		}
	}
	return deadline(conn, 0)
}

// replyTo is a reply to a member of this cluster; reason 0: it is accepted.
func (t *Transport) replyTo(id uint64, own *told, reason Reason) *reply {
	r := &reply{reason: reason, cluster: t.opt.Cluster, self: t.opt.Self, who: t.opt.Who, expects: t.expects(id),
		joins: own.birth.Unknown, learns: own.Unknown, features: ownFeatures(own.StateKnown), text: own.text}
	r.settings = markOf(r.text)
	return r
}

// acceptReply is the reply to a member whose settings agree with these. A value that only one side knows is not
// reported as a difference.
func (t *Transport) acceptReply(h *hello, own *told) *reply {
	r := t.replyTo(h.from, own, 0)
	if !h.joins || r.joins || r.settings == h.settings {
		r.settings, r.text = h.settings, ""
	}
	r.origin = h.origin.both(t.originFields())
	return r
}

// encodeReply is a reply's bytes, with all that follows them.
func (t *Transport) encodeReply(r *reply) []byte {
	b := r.encode()
	if r.reason == ReasonSettings || r.reason == 0 {
		b = append(b, r.text...)
	}
	return t.appendOrigin(b, r.origin)
}

// admission is 0 if a member's connections are accepted, else why not.
func (t *Transport) admission(id uint64) Reason {
	switch {
	case t.peer(id) != nil:
		return 0
	case t.opt.Admit != nil:
		return t.opt.Admit(id)
	}
	return ReasonUnknown
}

// serverSide puts TLS above an accepted connection, unless there is none, or the connection begins as a plain
// one and may.
func (t *Transport) serverSide(conn net.Conn) (net.Conn, error) {
	if t.tlsIn == nil {
		return conn, nil
	}
	if t.opt.TLSByAddress {
		begin := &begunConn{Conn: conn, ahead: make([]byte, 1)}
		if _, err := io.ReadFull(conn, begin.ahead); err != nil {
			return nil, err
		}
		if conn = begin; begin.ahead[0] != tlsHandshake {
			return conn, nil
		}
	}
	c := tls.Server(conn, t.tlsIn)
	return c, c.Handshake()
}

// bound reports why a connection cannot be from a member: its certificate does not name the member's host, as
// far as that is known.
func (t *Transport) bound(conn net.Conn, from uint64) error {
	p := t.peer(from)
	c, ok := conn.(*tls.Conn)
	if !t.opt.TLSBinds || !ok || p == nil || len(*p.binds.Load()) == 0 {
		return nil
	}
	shown := c.ConnectionState().PeerCertificates[0]
	for _, addr := range *p.binds.Load() {
		host, _, err := net.SplitHostPort(strings.TrimPrefix(addr, plainScheme))
		if err == nil && shown.VerifyHostname(host) == nil {
			return nil
		}
	}
	return fmt.Errorf("the certificate of %q, from %s, names no host of member %x", shown.Subject.CommonName,
		conn.RemoteAddr(), from)
}

// tlsHandshake is the first byte of a connection with TLS, and of no other one of members.
const tlsHandshake = 0x16

// begunConn is a connection with bytes that were read ahead.
type begunConn struct {
	net.Conn
	ahead []byte
}

// Read implements net.Conn.
func (c *begunConn) Read(b []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.ahead)
	c.ahead = c.ahead[n:]
	return n, nil
}

// NetConn returns the connection below, as that of TLS does.
func (c *begunConn) NetConn() net.Conn { return c.Conn }

package transport

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// The dialer's side of a handshake: hello, reply, agreement. There is a link when the agreement is sent.

// greet makes the dialer's handshake, from hello to link.
func (t *Transport) greet(conn net.Conn, h *hello) error {
	if err := h.fill(t); err != nil {
		return err
	}
	if _, err := conn.Write(append(h.encode(), h.text...)); err != nil {
		return err
	}
	r, err := readReply(conn, h)
	if err != nil {
		return err
	}
	if err := t.checkReply(conn, h, &r); err != nil {
		return err
	}
	birth, known, err := t.readBirth(h, &r, conn)
	if err != nil {
		return err
	}
	from, err := t.readOrigin(&r, conn)
	if err != nil {
		return err
	}
	if err := t.refuseUnrelated(h.to, conn, from); err != nil {
		return err
	}
	if err := t.acceptFormat(h.to, conn, h.own.Format, from); err != nil {
		return err
	}
	if err := t.verify(h.to, r.who, r.expects); err != nil {
		t.identityRefused(h.to, r.who, r.expects)
		return refusal(conn, h, ReasonIdentity, err.Error())
	}
	if err := t.acceptOrigin(h, conn, from); err != nil || h.probe {
		return err
	}
	if err := t.linked(h.to, r.who); err != nil {
		return err
	}
	t.noteFeatures(h.to, r.features)
	if err := t.noteFormat(h.to, from.is); err != nil {
		return err
	}
	if known {
		if err := t.saveBirth(h.to, birth); err != nil {
			return err
		}
	}
	_, err = conn.Write(t.agreement(&r))
	return err
}

// refusal is this side's, of the member that it dialed.
func refusal(conn net.Conn, h *hello, reason Reason, detail string) *HandshakeError {
	return &HandshakeError{Peer: h.to, Addr: conn.RemoteAddr().String(), Reason: reason, Detail: detail}
}

// readReply reads the fixed part of a reply.
func readReply(conn net.Conn, h *hello) (r reply, err error) {
	b := make([]byte, replySize)
	if _, err := io.ReadFull(conn, b[:headSize]); err != nil {
		return r, fmt.Errorf("no answer to the handshake: %w", err)
	}
	if binary.LittleEndian.Uint32(b) != replyMagic {
		return r, refusal(conn, h, ReasonGarbage, "answer looks like "+looksLike(b))
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != version { // another version's may be shorter
		return r, refusal(conn, h, ReasonVersion, fmt.Sprintf("version %d, this is %d", v, version))
	}
	if _, err := io.ReadFull(conn, b[headSize:]); err != nil {
		return r, fmt.Errorf("half an answer to the handshake: %w", err)
	}
	r, ok := decodeReply(b)
	if !ok {
		return r, refusal(conn, h, ReasonGarbage, "answer looks like "+looksLike(b))
	}
	return r, nil
}

// checkReply returns why there is no link, by the fixed part of a reply and by what follows it if it is a refusal.
func (t *Transport) checkReply(conn net.Conn, h *hello, r *reply) error {
	byPeer := func(detail string) error {
		err := refusal(conn, h, r.reason, detail)
		err.ByPeer = true
		return err
	}
	switch {
	case r.reason.Final() && (r.cluster != h.cluster || r.self != h.to):
		return refusal(conn, h, ReasonMember, fmt.Sprintf("member %x of cluster %x has no say here: %s", r.self,
			r.cluster, r.reason))
	case r.reason == ReasonIdentity && r.self == h.to: // the reply has who it expects this member to be
		return t.refusedByPeer(h, r, conn)
	case r.reason.Final():
		return cmp.Or(t.refuseUnrelatedReply(h, r, conn), byPeer(""))
	case r.reason != 0:
		return byPeer(t.explain(h, r, conn))
	case r.cluster != h.cluster:
		return refusal(conn, h, ReasonCluster, fmt.Sprintf("cluster %x, this is %x", r.cluster, h.cluster))
	case r.self != h.to:
		return refusal(conn, h, ReasonMember, fmt.Sprintf("member %x answered", r.self))
	case r.settings != h.settings && !h.joins:
		return refusal(conn, h, ReasonSettings, "the peer did not see it")
	}
	if d := h.own.stateDiffers(0, r.features.state); d != "" {
		return refusal(conn, h, ReasonSettings, d)
	}
	return nil
}

// explain returns the detail of a peer's refusal: what this side knows, and what follows the refusal.
func (t *Transport) explain(h *hello, r *reply, more io.Reader) string {
	switch r.reason {
	case ReasonCluster:
		return fmt.Sprintf("this is cluster %x", h.cluster)
	case ReasonMember:
		return fmt.Sprintf("it is member %x", r.self)
	case ReasonSettings:
		there, err := readSettings(more, r.settings)
		if err != nil {
			return "which ones the peer did not tell: " + err.Error()
		}
		return t.differ(h.own, there, r.joins, r.learns, r.features)
	}
	return ""
}

// readBirth reads from a reply, which a member that joins got, with which state the cluster began. ok is false if that
// member joins too.
func (t *Transport) readBirth(h *hello, r *reply, more io.Reader) (state string, ok bool, err error) {
	if !h.joins || r.joins {
		return "", false, nil
	}
	if r.settings == h.settings {
		return "", true, nil
	}
	text, err := readSettings(more, r.settings)
	if err != nil {
		return "", false, fmt.Errorf("half an answer to the handshake: %w", err)
	}
	if d := t.differ(h.own, text, r.joins, r.learns, r.features); d != "" {
		return "", false, &HandshakeError{Peer: h.to, Reason: ReasonSettings, Detail: d}
	}
	_, state = birthOf(text)
	return state, true, nil
}

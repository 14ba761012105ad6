package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// Each side of a handshake sends the origin of its log, and its Format: the listening side after its reply, the dialer
// with its last byte. It does so only to a side whose flags show that it supports lineages, founders, or formats, so
// links with earlier versions stay as they were. The side that finds another log refuses, and both learn the two
// origins. Who a member with another log expects this one to be means nothing, so lineages are compared first, if both
// are known.

// lineageSize is the length in bytes of a lineage, and of a digest of founders.
const lineageSize = 8

// flagLineages and flagFounders in a hello or a reply show that its sender supports lineages, and founders. Earlier
// versions ignore them. There is no flagFounders without flagLineages.
const (
	flagLineages = 2
	flagFounders = 4
)

// originFields are the fields behind a reply and an agreement that a side supports. It sends them to a side that
// supports them, too.
type originFields struct{ lineages, founders, formats bool }

// originFieldsOf decodes flags.
func originFieldsOf(flags byte) originFields {
	lineages := flags&flagLineages != 0
	return originFields{lineages, lineages && flags&flagFounders != 0, flags&(flagSeals|flagTunes) == flagSeals}
}

// both returns the fields that both of two sides support.
func (k originFields) both(o originFields) originFields {
	return originFields{k.lineages && o.lineages, k.founders && o.founders, k.formats && o.formats}
}

// size is the length of the fields in bytes.
func (k originFields) size() (n int) {
	if k.lineages {
		n += lineageSize
	}
	if k.founders {
		n += lineageSize
	}
	if k.formats {
		n += formatSize
	}
	return n
}

// format reads the last field: the first format if it is not there.
func (k originFields) format(b []byte) Format {
	if !k.formats {
		return Format{}.orFirst()
	}
	return decodeFormat(b[k.size()-formatSize:])
}

// decode reads the fields: a lineage, and a digest of founders, each 0 if it is not known.
func (k originFields) decode(b []byte) (lineage, founders uint64) {
	if k.lineages {
		lineage = binary.LittleEndian.Uint64(b)
	}
	if k.founders {
		founders = binary.LittleEndian.Uint64(b[lineageSize:])
	}
	return lineage, founders
}

// unrelated is the dialer's last byte if it refuses the lineage of the listening side; see agreed.
const unrelated = 0x15

// originFields returns the fields that this side supports.
func (t *Transport) originFields() originFields {
	knows := t.opt.Lineage != nil && t.opt.CheckOrigin != nil
	return originFields{knows, knows, true}
}

// appendOrigin appends the fields of this side's origin, as they are now.
func (t *Transport) appendOrigin(b []byte, k originFields) []byte {
	if k.lineages {
		b = binary.LittleEndian.AppendUint64(b, t.opt.Lineage())
	}
	if k.founders {
		b = binary.LittleEndian.AppendUint64(b, t.opt.Founders)
	}
	if k.formats {
		b = t.ownFormat().append(b)
	}
	return b
}

// checkOrigin decides about the origin of a member's log. A refusal is a *HandshakeError.
func (t *Transport) checkOrigin(id uint64, conn net.Conn, lineage, founders uint64) error {
	ok, err := t.opt.CheckOrigin(id, lineage, founders)
	if !ok {
		return &HandshakeError{Peer: id, Addr: conn.RemoteAddr().String(), Reason: ReasonLineage, Detail: err.Error()}
	}
	return err
}

// peerOrigin is what a side sent of the origin of its log.
type peerOrigin struct {
	originFields
	lineage, founders uint64
	is                Format
}

// readOrigin is the dialer's: it reads the origin that the listening side sent.
func (t *Transport) readOrigin(r *reply, conn net.Conn) (o peerOrigin, err error) {
	b := make([]byte, r.origin.size())
	if _, err := io.ReadFull(conn, b); err != nil {
		return o, fmt.Errorf("half an answer to the handshake: %w", err)
	}
	o.originFields = r.origin
	o.lineage, o.founders = r.origin.decode(b)
	o.is = r.origin.format(b)
	return o, nil
}

// refuseUnrelated is the dialer's: it refuses a member that is known to have another log, and sends that. Nothing is
// adopted.
func (t *Transport) refuseUnrelated(id uint64, conn net.Conn, o peerOrigin) error {
	if o.lineage == 0 || t.opt.Lineage() == 0 {
		return nil
	}
	return t.checkOrRefuse(id, conn, o)
}

// acceptFormat is the dialer's: it decides about the format of the listening side. If it refuses, it sends its own.
func (t *Transport) acceptFormat(id uint64, conn net.Conn, own Format, o peerOrigin) error {
	err := t.checkFormat(id, conn, own, o.is)
	if err != nil && o.formats {
		conn.Write(t.appendOrigin([]byte{unrelated}, o.originFields)) // best effort: there is no link either way
	}
	return err
}

// acceptOrigin is the dialer's: it decides about the origin that the listening side sent. If it refuses, it sends
// that.
func (t *Transport) acceptOrigin(h *hello, conn net.Conn, o peerOrigin) error {
	if !o.lineages || h.probe && t.opt.Lineage() == 0 { // nothing is adopted
		return nil
	}
	return t.checkOrRefuse(h.to, conn, o)
}

func (t *Transport) checkOrRefuse(id uint64, conn net.Conn, o peerOrigin) error {
	err := t.checkOrigin(id, conn, o.lineage, o.founders)
	if refused := (*HandshakeError)(nil); errors.As(err, &refused) {
		conn.Write(t.appendOrigin([]byte{unrelated}, o.originFields)) // best effort: there is no link either way
	}
	return err
}

// refuseUnrelatedReply is the dialer's: refuseUnrelated of a listening side that refuses it, and that sent the origin
// of its log if it could.
func (t *Transport) refuseUnrelatedReply(h *hello, r *reply, conn net.Conn) error {
	o, err := t.readOrigin(r, conn)
	if err != nil {
		return nil
	}
	return t.refuseUnrelated(h.to, conn, o)
}

// refusedByPeer is the dialer's: the listening side refuses it for who it is.
func (t *Transport) refusedByPeer(h *hello, r *reply, conn net.Conn) error {
	if err := t.refuseUnrelatedReply(h, r, conn); err != nil {
		return err
	}
	refused := &HandshakeError{Peer: h.to, Addr: conn.RemoteAddr().String(), Reason: ReasonIdentity, ByPeer: true}
	if err := t.verify(h.to, r.who, r.expects); err != nil {
		refused.Detail = err.Error()
		t.identityRefused(h.to, r.who, r.expects)
	}
	return refused
}

// refusedHere is the listening side's: it has refused the dialer for who it is. The dialer may answer that it has
// another log: then that is why, and who it expects this member to be means nothing. It waits as long as a handshake
// may take.
func (t *Transport) refusedHere(h *hello, r *reply, conn net.Conn, refused error) error {
	if r.origin.lineages {
		last := make([]byte, 1+r.origin.size())
		if _, err := io.ReadFull(conn, last); err == nil && last[0] == unrelated {
			return t.unrelatedPeer(h, r, conn, last[1:])
		}
	}
	t.identityRefused(h.from, h.who, h.expects)
	return refused
}

// unrelatedPeer indicates that the dialer found that it has another log.
func (t *Transport) unrelatedPeer(h *hello, r *reply, conn net.Conn, told []byte) error {
	lineage, founders := r.origin.decode(told)
	return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: ReasonLineage, ByPeer: true,
		Detail: fmt.Sprintf("lineage %016x there, %016x here; founders %016x there, %016x here", lineage, t.opt.Lineage(),
			founders, t.opt.Founders)}
}

// agreement is the last message of the dialer.
func (t *Transport) agreement(r *reply) []byte {
	return t.appendOrigin([]byte{agreed}, r.origin)
}

// readAgreement is the listening side's: it reads whether the dialer agrees, and decides about the origin of its log.
func (t *Transport) readAgreement(conn net.Conn, h *hello, r *reply) error {
	last := make([]byte, 1+r.origin.size())
	if _, err := io.ReadFull(conn, last); err != nil {
		return fmt.Errorf("member %x at %s did not agree to the link: %w", h.from, conn.RemoteAddr(), err)
	}
	if last[0] != agreed && (last[0] != unrelated || r.origin == originFields{}) {
		return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: ReasonGarbage,
			Detail: "wrong last word"}
	}
	own, there := t.ownFormat(), r.origin.format(last[1:])
	if err := t.checkFormat(h.from, conn, own, there); err != nil {
		return err
	}
	if r.origin.lineages {
		if last[0] == unrelated {
			return t.unrelatedPeer(h, r, conn, last[1:])
		}
		lineage, founders := r.origin.decode(last[1:])
		if err := t.checkOrigin(h.from, conn, lineage, founders); err != nil {
			return err
		}
	}
	return t.noteFormat(h.from, there)
}

// Probe makes a handshake with a member that may have no link yet, how far both know why there may be none, and hangs
// up. It returns nil if there may be a link, a [*HandshakeError] that explains why not, or why that is not known.
// Nothing is recorded of that member. It waits until ctx ends, and at most as long as a handshake may take for each
// address.
func (t *Transport) Probe(ctx context.Context, id uint64, addrs []string) (err error) {
	for _, addr := range addrs {
		err = t.probe(ctx, id, addr)
		if refused := (*HandshakeError)(nil); err == nil || errors.As(err, &refused) {
			return err
		}
	}
	return err
}

func (t *Transport) probe(ctx context.Context, id uint64, addr string) error {
	host, plain := strings.CutPrefix(addr, plainScheme)
	raw, err := t.connect(ctx, host)
	if err != nil {
		return &LinkError{Peer: id, Op: "dial " + addr, Err: err}
	}
	unhook := context.AfterFunc(ctx, func() { raw.Close() })
	defer unhook()
	conn, err := t.agree(t.shaper.wrap(raw, 0, id, nil), host, plain, &hello{
		purpose: forSnapshot, cluster: t.opt.Cluster, from: t.opt.Self, to: id, who: t.opt.Who, expects: t.expects(id),
		probe: true,
	})
	hangUp(conn)
	return err
}

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

// Each side of a handshake tells where its log comes from: the listening side behind its reply, the dialer with its
// last byte. It does so only to a side that says in its flags that it knows of lineages, or of founders, so links with
// earlier versions stay as they were. The side that finds another log refuses; both learn which ones they are. What a
// member with another log takes this one for says nothing, so lineages are compared first, if both are known.

// lineageSize is the length in bytes of a lineage, and of a digest of founders.
const lineageSize = 8

// flagLineages and flagFounders in a hello or a reply say that its sender knows of lineages, and of founders. Earlier
// versions ignore them. There is no flagFounders without flagLineages.
const (
	flagLineages = 2
	flagFounders = 4
)

// tells is what a side knows of: what it tells another one that knows it, too.
type tells struct{ lineages, founders bool }

// tellsOf is what a side knows of by its flags.
func tellsOf(flags byte) tells {
	lineages := flags&flagLineages != 0
	return tells{lineages, lineages && flags&flagFounders != 0}
}

// both is what both of two sides know of.
func (k tells) both(o tells) tells { return tells{k.lineages && o.lineages, k.founders && o.founders} }

// size is the length in bytes of what is told.
func (k tells) size() (n int) {
	if k.lineages {
		n += lineageSize
	}
	if k.founders {
		n += lineageSize
	}
	return n
}

// decode reads what was told: a lineage, and a digest of founders, each 0 if it is not known.
func (k tells) decode(b []byte) (lineage, founders uint64) {
	if k.lineages {
		lineage = binary.LittleEndian.Uint64(b)
	}
	if k.founders {
		founders = binary.LittleEndian.Uint64(b[lineageSize:])
	}
	return lineage, founders
}

// unrelated is the dialer's last byte if it refuses the lineage that it was told; see agreed.
const unrelated = 0x15

// tells is what this side knows of.
func (t *Transport) tells() tells {
	knows := t.opt.Lineage != nil && t.opt.Relate != nil
	return tells{knows, knows}
}

// appendOrigin appends what this side tells now.
func (t *Transport) appendOrigin(b []byte, k tells) []byte {
	if k.lineages {
		b = binary.LittleEndian.AppendUint64(b, t.opt.Lineage())
	}
	if k.founders {
		b = binary.LittleEndian.AppendUint64(b, t.opt.Founders)
	}
	return b
}

// relate decides about the origin that a member told. A refusal is a *HandshakeError.
func (t *Transport) relate(id uint64, conn net.Conn, lineage, founders uint64) error {
	ok, err := t.opt.Relate(id, lineage, founders)
	if !ok {
		return &HandshakeError{Peer: id, Addr: conn.RemoteAddr().String(), Reason: ReasonLineage, Detail: err.Error()}
	}
	return err
}

// toldOrigin is what a side told of the origin of its log.
type toldOrigin struct {
	tells
	lineage, founders uint64
}

// readOrigin is the dialer's: it reads what the listening side told.
func (t *Transport) readOrigin(r *reply, conn net.Conn) (o toldOrigin, err error) {
	b := make([]byte, r.tells.size())
	if _, err := io.ReadFull(conn, b); err != nil {
		return o, fmt.Errorf("half an answer to the handshake: %w", err)
	}
	o.tells = r.tells
	o.lineage, o.founders = r.tells.decode(b)
	return o, nil
}

// tellApart is the dialer's: it refuses a member that is known to have another log, and says so. Nothing is taken over.
func (t *Transport) tellApart(id uint64, conn net.Conn, o toldOrigin) error {
	if o.lineage == 0 || t.opt.Lineage() == 0 {
		return nil
	}
	return t.relateOrSay(id, conn, o)
}

// acceptOrigin is the dialer's: it decides about what the listening side told. If it refuses, it says so.
func (t *Transport) acceptOrigin(h *hello, conn net.Conn, o toldOrigin) error {
	if !o.lineages || h.probe && t.opt.Lineage() == 0 { // nothing is taken over
		return nil
	}
	return t.relateOrSay(h.to, conn, o)
}

func (t *Transport) relateOrSay(id uint64, conn net.Conn, o toldOrigin) error {
	err := t.relate(id, conn, o.lineage, o.founders)
	if refused := (*HandshakeError)(nil); errors.As(err, &refused) {
		conn.Write(t.appendOrigin([]byte{unrelated}, o.tells)) // best effort: there is no link either way
	}
	return err
}

// tellOriginApart is the dialer's: it is tellApart of a listening side that refuses it, and tells where its log comes
// from if it can.
func (t *Transport) tellOriginApart(h *hello, r *reply, conn net.Conn) error {
	o, err := t.readOrigin(r, conn)
	if err != nil {
		return nil
	}
	return t.tellApart(h.to, conn, o)
}

// refusedByPeer is the dialer's: the listening side refuses it for who it is.
func (t *Transport) refusedByPeer(h *hello, r *reply, conn net.Conn) error {
	if err := t.tellOriginApart(h, r, conn); err != nil {
		return err
	}
	refused := &HandshakeError{Peer: h.to, Addr: conn.RemoteAddr().String(), Reason: ReasonIdentity, ByPeer: true}
	if err := t.meet(h.to, r.who, r.takes); err != nil {
		refused.Detail = err.Error()
		t.unmet(h.to, r.who, r.takes)
	}
	return refused
}

// refusedHere is the listening side's: it has refused the dialer for who it is. The dialer may answer that it has
// another log: then that is why, and what it takes this member for says nothing. It waits as long as a handshake may
// take.
func (t *Transport) refusedHere(h *hello, r *reply, conn net.Conn, refused error) error {
	if r.tells.lineages {
		last := make([]byte, 1+r.tells.size())
		if _, err := io.ReadFull(conn, last); err == nil && last[0] == unrelated {
			return t.unrelatedPeer(h, r, conn, last[1:])
		}
	}
	t.unmet(h.from, h.who, h.takes)
	return refused
}

// unrelatedPeer indicates that the dialer found that it has another log.
func (t *Transport) unrelatedPeer(h *hello, r *reply, conn net.Conn, told []byte) error {
	lineage, founders := r.tells.decode(told)
	return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: ReasonLineage, ByPeer: true,
		Detail: fmt.Sprintf("lineage %016x there, %016x here; founders %016x there, %016x here", lineage, t.opt.Lineage(), founders, t.opt.Founders)}
}

// lastWord is the last message of the dialer.
func (t *Transport) lastWord(r *reply) []byte {
	return t.appendOrigin([]byte{agreed}, r.tells)
}

// readLastWord is the listening side's: it reads whether the dialer agrees, and decides about the origin of its log.
func (t *Transport) readLastWord(conn net.Conn, h *hello, r *reply) error {
	last := make([]byte, 1+r.tells.size())
	if _, err := io.ReadFull(conn, last); err != nil {
		return fmt.Errorf("member %x at %s did not agree to the link: %w", h.from, conn.RemoteAddr(), err)
	}
	if last[0] != agreed && (last[0] != unrelated || !r.tells.lineages) {
		return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: ReasonGarbage, Detail: "wrong last word"}
	}
	if !r.tells.lineages {
		return nil
	}
	if last[0] == unrelated {
		return t.unrelatedPeer(h, r, conn, last[1:])
	}
	lineage, founders := r.tells.decode(last[1:])
	return t.relate(h.from, conn, lineage, founders)
}

// Probe makes a handshake with a member that may have no link yet, how far both know why there may be none, and hangs
// up. It returns nil if there may be a link, a [*HandshakeError] that explains why not, or why that is not known.
// Nothing is noted of that member. It waits until ctx ends, and at most as long as a handshake may take for each
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
	raw, err := t.dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return &LinkError{Peer: id, Op: "dial " + addr, Err: err}
	}
	unhook := context.AfterFunc(ctx, func() { raw.Close() })
	defer unhook()
	conn, err := t.agree(t.shaper.wrap(raw, 0, id, nil), host, plain, &hello{
		purpose: forSnapshot, cluster: t.opt.Cluster, from: t.opt.Self, to: id, who: t.opt.Who, takes: t.expects(id), probe: true,
	})
	hangUp(conn)
	return err
}

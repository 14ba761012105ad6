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

// Each side of a handshake tells the lineage of its log: the listening side behind its reply, the dialer with its last
// byte. It does so only to a side that says in its flags that it knows of lineages, so links with earlier versions stay
// as they were. The side that finds another lineage refuses; both learn which ones they are.

// lineageSize is the length in bytes of a lineage.
const lineageSize = 8

// flagLineages in a hello or a reply says that its sender knows of lineages. Earlier versions ignore it.
const flagLineages = 2

// unrelated is the dialer's last byte if it refuses the lineage that it was told; see agreed.
const unrelated = 0x15

// tellsLineages reports whether this side knows of lineages.
func (t *Transport) tellsLineages() bool { return t.opt.Lineage != nil && t.opt.Relate != nil }

// appendLineage appends what this side tells now.
func (t *Transport) appendLineage(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, t.opt.Lineage())
}

// relate decides about the lineage that a member told. A refusal is a *HandshakeError.
func (t *Transport) relate(id uint64, conn net.Conn, told uint64) error {
	ok, err := t.opt.Relate(id, told)
	if !ok {
		return &HandshakeError{Peer: id, Addr: conn.RemoteAddr().String(), Reason: ReasonLineage, Detail: err.Error()}
	}
	return err
}

// readLineage is the dialer's: it reads what the listening side told, and decides. If it refuses, it says so.
func (t *Transport) readLineage(h *hello, r *reply, conn net.Conn) error {
	if !r.lineages {
		return nil
	}
	b := make([]byte, lineageSize)
	if _, err := io.ReadFull(conn, b); err != nil {
		return fmt.Errorf("half an answer to the handshake: %w", err)
	}
	told := binary.LittleEndian.Uint64(b)
	if h.probe && t.opt.Lineage() == 0 { // nothing is taken over
		return nil
	}
	err := t.relate(h.to, conn, told)
	if refused := (*HandshakeError)(nil); errors.As(err, &refused) {
		conn.Write(t.appendLineage([]byte{unrelated})) // best effort: there is no link either way
	}
	return err
}

// lastWord is what the dialer says last.
func (t *Transport) lastWord(r *reply) []byte {
	if !r.lineages {
		return []byte{agreed}
	}
	return t.appendLineage([]byte{agreed})
}

// hearLastWord is the listening side's: it reads whether the dialer agrees, and decides about its lineage.
func (t *Transport) hearLastWord(conn net.Conn, h *hello, r *reply) error {
	last := make([]byte, 1, 1+lineageSize)
	if r.lineages {
		last = last[:1+lineageSize]
	}
	if _, err := io.ReadFull(conn, last); err != nil {
		return fmt.Errorf("member %x at %s did not agree to the link: %w", h.from, conn.RemoteAddr(), err)
	}
	if last[0] != agreed && (last[0] != unrelated || !r.lineages) {
		return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: ReasonGarbage, Detail: "wrong last word"}
	}
	if !r.lineages {
		return nil
	}
	told := binary.LittleEndian.Uint64(last[1:])
	if last[0] == agreed {
		return t.relate(h.from, conn, told)
	}
	return &HandshakeError{Peer: h.from, Addr: conn.RemoteAddr().String(), Reason: ReasonLineage, ByPeer: true,
		Detail: fmt.Sprintf("lineage %016x there, %016x here", told, t.opt.Lineage())}
}

// Probe makes a handshake with a member that may have no link yet, up to where both know why there may be none, and hangs
// up. It returns nil if there may be a link, a [*HandshakeError] that says why not, or why that is not known. Nothing is noted
// of that member. It waits until ctx ends, and at most as long as a handshake may take for each address.
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
		purpose: forRequests, cluster: t.opt.Cluster, from: t.opt.Self, to: id, who: t.opt.Who, takes: t.takes(id), probe: true,
	})
	hangUp(conn)
	return err
}

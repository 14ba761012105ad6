package transport

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
)

// version of the links' formats. Members of different versions do not talk.
const version = 3

// Who says on which data directory a member runs: the directory's log identity, and the number of this incarnation.
// Copies of a directory can have lives with the same number; Mark tells them apart. The zero value is no one.
type Who struct {
	Log        [16]byte
	Life, Mark uint64
}

const whoSize = 16 + 2*8

func (w *Who) append(b []byte) []byte {
	b = append(b, w.Log[:]...)
	b = binary.LittleEndian.AppendUint64(b, w.Life)
	return binary.LittleEndian.AppendUint64(b, w.Mark)
}

func decodeWho(b []byte) (w Who) {
	copy(w.Log[:], b)
	w.Life, w.Mark = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	return w
}

// purpose is the purpose of a connection.
type purpose uint8

const (
	forFrames purpose = iota + 1
	forRequests
	forSnapshot
)

func (p purpose) String() string {
	return [...]string{"?", "frames", "requests", "snapshot"}[min(p, forSnapshot)]
}

// hello is the first message of the dialer. The text of its settings follows.
type hello struct {
	purpose  purpose
	cluster  uint64
	from, to uint64
	settings mark
	stream   uint32
	// who the dialer is, and whom it takes the other side for.
	who, takes Who
	// joins: the dialer does not know the birth (see Birth).
	joins bool
	// tells is what the dialer knows of. probe: it only asks whether there may be a link; this is not told.
	tells tells
	probe bool
	// text is what the mark stands for; it follows.
	text string
}

// fill puts into a hello what is compared.
func (h *hello) fill(t *Transport) {
	b := t.birth()
	h.joins, h.text, h.tells = b.Unknown, t.told(b), t.tells()
	h.settings = markOf(h.text)
}

// reply is what the listening side answers: 0 and who it is, or why it refuses. With ReasonSettings, and if only the
// dialer joins and the marks differ, the text of its settings follows. With the same bytes the listening side ends a
// connection later.
type reply struct {
	reason   Reason
	cluster  uint64
	self     uint64
	settings mark
	// who the listening side is, and whom it takes the dialer for.
	who, takes Who
	// joins: the listening side does not know the birth.
	joins bool
	// tells is what follows behind the text.
	tells tells
	text  string // that follows
}

const (
	helloMagic = 0x6d_62_72_64 // "drbm"
	replyMagic = 0x61_62_72_64
	headSize   = 4 + 2 + 1 + 1 // magic, version, purpose or reason, reserved: the same in all versions
	helloSize  = headSize + 4*8 + 4 + 2*whoSize + 4
	replySize  = headSize + 3*8 + 2*whoSize + 4
	// agreed is the dialer's last byte: it accepts the reply, and the link may be used.
	agreed = 0x06
)

func (h *hello) encode() []byte {
	b := make([]byte, 0, helloSize)
	b = binary.LittleEndian.AppendUint32(b, helloMagic)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = append(b, byte(h.purpose), flags(h.joins, h.tells))
	for _, v := range [...]uint64{h.cluster, h.from, h.to, uint64(h.settings)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, h.stream)
	b = h.takes.append(h.who.append(b))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeHello returns the hello, or a reason to refuse it and what is wrong.
func decodeHello(b []byte) (h hello, reason Reason, detail string) {
	if binary.LittleEndian.Uint32(b) != helloMagic {
		return h, ReasonGarbage, "looks like " + looksLike(b)
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != version {
		return h, ReasonVersion, fmt.Sprintf("version %d, this is %d", v, version)
	}
	if crc32.Checksum(b[:helloSize-4], castagnoli) != binary.LittleEndian.Uint32(b[helloSize-4:]) {
		return h, ReasonGarbage, "wrong checksum"
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	h = hello{
		purpose: purpose(b[6]), cluster: u(0), from: u(1), to: u(2), settings: mark(u(3)), stream: binary.LittleEndian.Uint32(b[40:]),
		who: decodeWho(b[44:]), takes: decodeWho(b[44+whoSize:]), joins: b[7]&flagJoins != 0, tells: tellsOf(b[7]),
	}
	if h.purpose < forFrames || h.purpose > forSnapshot {
		return h, ReasonGarbage, fmt.Sprintf("unknown purpose %d", h.purpose)
	}
	return h, 0, ""
}

func (r *reply) encode() []byte {
	b := make([]byte, 0, replySize)
	b = binary.LittleEndian.AppendUint32(b, replyMagic)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = append(b, byte(r.reason), flags(r.joins, r.tells))
	for _, v := range [...]uint64{r.cluster, r.self, uint64(r.settings)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = r.takes.append(r.who.append(b))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeReply(b []byte) (r reply, ok bool) {
	if binary.LittleEndian.Uint32(b) != replyMagic ||
		crc32.Checksum(b[:replySize-4], castagnoli) != binary.LittleEndian.Uint32(b[replySize-4:]) {
		return r, false
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	return reply{
		reason: Reason(b[6]), cluster: u(0), self: u(1), settings: mark(u(2)), who: decodeWho(b[32:]), takes: decodeWho(b[32+whoSize:]),
		joins: b[7]&flagJoins != 0, tells: tellsOf(b[7]),
	}, true
}

// looksLike guesses what a stranger speaks, for the log.
func looksLike(b []byte) string {
	switch {
	case b[0] == 0x16 && b[1] == 3:
		return "TLS, but this port is plain"
	case string(b[:4]) == "GET ", string(b[:4]) == "POST", string(b[:4]) == "HEAD", string(b[:4]) == "PUT ":
		return "HTTP"
	case string(b[:4]) == "PRI ":
		return "HTTP/2 or gRPC"
	}
	return fmt.Sprintf("% x", b[:8])
}

// greet is the dialer's side of the handshake.
func (t *Transport) greet(conn net.Conn, h *hello) error {
	h.fill(t)
	if _, err := conn.Write(append(h.encode(), h.text...)); err != nil {
		return err
	}
	refused := func(reason Reason, byPeer bool, detail string) error {
		return &HandshakeError{Peer: h.to, Addr: conn.RemoteAddr().String(), Reason: reason, ByPeer: byPeer, Detail: detail}
	}
	b := make([]byte, replySize)
	if _, err := io.ReadFull(conn, b[:headSize]); err != nil {
		return fmt.Errorf("no answer to the handshake: %w", err)
	}
	if binary.LittleEndian.Uint32(b) != replyMagic {
		return refused(ReasonGarbage, false, "answer looks like "+looksLike(b))
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != version { // another version's may be shorter
		return refused(ReasonVersion, false, fmt.Sprintf("version %d, this is %d", v, version))
	}
	if _, err := io.ReadFull(conn, b[headSize:]); err != nil {
		return fmt.Errorf("half an answer to the handshake: %w", err)
	}
	r, ok := decodeReply(b)
	switch {
	case !ok:
		return refused(ReasonGarbage, false, "answer looks like "+looksLike(b))
	case r.reason.Final() && (r.cluster != h.cluster || r.self != h.to):
		return refused(ReasonMember, false, fmt.Sprintf("member %x of cluster %x has no say here: %s", r.self, r.cluster, r.reason))
	case r.reason == ReasonIdentity && r.self == h.to: // whom it takes this member for
		return t.refusedByPeer(h, &r, conn)
	case r.reason.Final():
		return cmp.Or(t.tellOriginApart(h, &r, conn), refused(r.reason, true, ""))
	case r.reason != 0:
		return refused(r.reason, true, t.explain(h, &r, conn))
	case r.cluster != h.cluster:
		return refused(ReasonCluster, false, fmt.Sprintf("cluster %x, this is %x", r.cluster, h.cluster))
	case r.self != h.to:
		return refused(ReasonMember, false, fmt.Sprintf("member %x answered", r.self))
	case r.settings != h.settings && !h.joins:
		return refused(ReasonSettings, false, "the peer did not see it")
	}
	birth, told, err := t.learnFrom(h, &r, conn)
	if err != nil {
		return err
	}
	from, err := t.readOrigin(&r, conn)
	if err != nil {
		return err
	}
	if err := t.tellApart(h.to, conn, from); err != nil {
		return err
	}
	if err := t.meet(h.to, r.who, r.takes); err != nil {
		t.unmet(h.to, r.who, r.takes)
		return refused(ReasonIdentity, false, err.Error())
	}
	if err := t.acceptOrigin(h, conn, from); err != nil || h.probe {
		return err
	}
	if err := t.met(h.to, r.who); err != nil {
		return err
	}
	if told {
		if err := t.born(h.to, birth); err != nil {
			return err
		}
	}
	_, err = conn.Write(t.lastWord(&r))
	return err
}

// meet decides whether to link with a member, by what it says it is. It changes nothing.
func (t *Transport) meet(id uint64, who, takes Who) error {
	if t.opt.Meet == nil {
		return nil
	}
	return t.opt.Meet(id, who, takes)
}

// unmet takes in what a member says that meet refuses. Perhaps this member is not the one that was known, and stops. So
// it is only called if the other member is not known to have another log: see tellApart.
func (t *Transport) unmet(id uint64, who, takes Who) {
	if t.opt.Unmet != nil {
		t.opt.Unmet(id, who, takes)
	}
}

// met notes that there is a link with a member now, before anything is read from it.
func (t *Transport) met(id uint64, who Who) error {
	if t.opt.Met == nil {
		return nil
	}
	return t.opt.Met(id, who)
}

// expects is who this member thinks another one is.
func (t *Transport) expects(id uint64) (w Who) {
	if t.opt.Takes != nil {
		w = t.opt.Takes(id)
	}
	return w
}

// replyTo is a reply to a member of this cluster; reason 0: it is welcome.
func (t *Transport) replyTo(id uint64, reason Reason) *reply {
	b := t.birth()
	r := &reply{reason: reason, cluster: t.opt.Cluster, self: t.opt.Self, who: t.opt.Who, takes: t.expects(id), joins: b.Unknown, text: t.told(b)}
	r.settings = markOf(r.text)
	return r
}

// welcomes is the reply to a member whose settings agree with these. A value that only one side knows is not reported
// as a difference.
func (t *Transport) welcomes(h *hello) *reply {
	r := t.replyTo(h.from, 0)
	if !h.joins || r.joins || r.settings == h.settings {
		r.settings, r.text = h.settings, ""
	}
	r.tells = h.tells.both(t.tells())
	return r
}

// explain adds to a peer's refusal what this side knows, and what else the peer says.
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
		return settingsDiffer(there, h.text)
	}
	return ""
}

// welcome is the listening side's: it reads the hello and decides, without answering yet.
// On refusal the error is a *HandshakeError and r what to answer (nothing if r is nil).
func (t *Transport) welcome(conn net.Conn) (h hello, r *reply, err error) {
	addr := conn.RemoteAddr().String()
	b := make([]byte, helloSize)
	// The magic first: a stranger that says little is told apart at once.
	n, err := io.ReadAtLeast(conn, b, headSize)
	if err != nil {
		return h, nil, fmt.Errorf("no handshake from %s: %d bytes, then: %w", addr, n, err)
	}
	if isQuestion(b[:n]) {
		return h, nil, t.answerJoiner(conn, b[:n])
	}
	if binary.LittleEndian.Uint32(b) != helloMagic {
		return h, nil, &HandshakeError{Addr: addr, Reason: ReasonGarbage, Detail: "looks like " + looksLike(b)}
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v == version { // another version's may be shorter
		if _, err := io.ReadFull(conn, b[n:]); err != nil {
			return h, nil, fmt.Errorf("half a handshake from %s: %w", addr, err)
		}
	}
	h, reason, detail := decodeHello(b)
	if reason == 0 {
		if h.text, err = readSettings(conn, h.settings); err != nil {
			return h, nil, fmt.Errorf("half a handshake from %s: %w", addr, err)
		}
		reason, detail = t.judge(&h)
	}
	if reason == 0 {
		return h, t.welcomes(&h), nil
	}
	err = &HandshakeError{Peer: h.from, Addr: addr, Reason: reason, Detail: detail}
	switch reason {
	case ReasonGarbage:
		return h, nil, err
	case ReasonVersion, ReasonCluster: // a stranger learns nothing about this cluster
		return h, &reply{reason: reason}, err
	}
	r = t.replyTo(h.from, reason)
	if reason == ReasonIdentity || reason.Final() { // which says nothing if the logs are two
		r.tells = h.tells.both(t.tells())
	}
	return h, r, err
}

// answer is a reply's bytes, with all that follows them.
func (t *Transport) answer(r *reply) []byte {
	b := r.encode()
	if r.reason == ReasonSettings || r.reason == 0 {
		b = append(b, r.text...)
	}
	return t.appendOrigin(b, r.tells)
}

// judge decides whether to accept the sender of h.
func (t *Transport) judge(h *hello) (Reason, string) {
	o := &t.opt
	switch {
	case h.cluster != o.Cluster:
		return ReasonCluster, fmt.Sprintf("cluster %x, this is %x", h.cluster, o.Cluster)
	case h.to != o.Self:
		return ReasonMember, fmt.Sprintf("it looks for member %x, this is %x", h.to, o.Self)
	case h.from == o.Self:
		return ReasonMember, fmt.Sprintf("it claims to be member %x, which this is", h.from)
	case !t.sameLog(h.text, h.joins):
		return ReasonSettings, settingsDiffer(h.text, t.told(t.birth()))
	}
	reason := t.admission(h.from)
	if reason != 0 && reason != ReasonLineage {
		return reason, ""
	}
	// Also a member that is refused for its lineage may know this one from before this one lost its disk.
	if err := t.meet(h.from, h.who, h.takes); err != nil {
		return ReasonIdentity, err.Error()
	}
	return reason, ""
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

// deadline sets one deadline for both directions, or none for 0.
func deadline(conn net.Conn, d time.Duration) error {
	if d == 0 {
		return conn.SetDeadline(time.Time{})
	}
	return conn.SetDeadline(time.Now().Add(d))
}

package transport

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// version of the links' formats. Members of different versions do not talk.
const version = 3

// Who names the data directory on which a member runs, by the directory's log identity and the number of this
// incarnation. Copies of a directory can have incarnations with the same number; Mark distinguishes them. The zero
// value is no member.
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
	// who the dialer is, and who it expects the other side to be.
	who, expects Who
	// joins: the dialer does not know the birth (see Birth).
	joins bool
	// learns: the dialer does not know the profile (see Told).
	learns   bool
	features features
	// origin is what the dialer can send of its log's origin. probe: it only asks whether there may be a link, which the
	// listening side does not learn.
	origin originFields
	probe  bool
	// text is what settings is the mark of; it follows.
	text string
	own  *told // what the dialer told, on its side
}

// fill sets the fields that the listening side compares.
func (h *hello) fill(t *Transport) error {
	own, err := t.told()
	if err != nil {
		return err
	}
	h.joins, h.learns, h.text, h.own, h.origin = own.birth.Unknown, own.Unknown, own.text, &own, t.originFields()
	h.settings, h.features = markOf(h.text), ownFeatures(own.StateKnown)
	return nil
}

// reply is the answer of the listening side: reason 0 and who it is, or why it refuses. With ReasonSettings, and if
// only the dialer joins and the marks differ, the text of its settings follows. With the same bytes the listening side
// ends a connection later.
type reply struct {
	reason   Reason
	cluster  uint64
	self     uint64
	settings mark
	// who the listening side is, and who it expects the dialer to be.
	who, expects Who
	// joins: the listening side does not know the birth. learns: it does not know the profile.
	joins, learns bool
	features      features
	// origin is what follows behind the text.
	origin originFields
	text   string // that follows
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
	b = append(b, byte(h.purpose), flags(h.joins, h.learns, h.features, h.origin))
	for _, v := range [...]uint64{h.cluster, h.from, h.to, uint64(h.settings)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, h.stream)
	b = h.expects.append(h.who.append(b))
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
		purpose: purpose(b[6]), cluster: u(0), from: u(1), to: u(2), settings: mark(u(3)),
		stream: binary.LittleEndian.Uint32(b[40:]),
		who:    decodeWho(b[44:]), expects: decodeWho(b[44+whoSize:]), joins: b[7]&flagJoins != 0,
		learns: b[7]&flagLearns != 0, features: featuresOf(b[7]), origin: originFieldsOf(b[7]),
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
	b = append(b, byte(r.reason), flags(r.joins, r.learns, r.features, r.origin))
	for _, v := range [...]uint64{r.cluster, r.self, uint64(r.settings)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = r.expects.append(r.who.append(b))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeReply(b []byte) (r reply, ok bool) {
	if binary.LittleEndian.Uint32(b) != replyMagic ||
		crc32.Checksum(b[:replySize-4], castagnoli) != binary.LittleEndian.Uint32(b[replySize-4:]) {
		return r, false
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	return reply{
		reason: Reason(b[6]), cluster: u(0), self: u(1), settings: mark(u(2)), who: decodeWho(b[32:]),
		expects: decodeWho(b[32+whoSize:]),
		joins:   b[7]&flagJoins != 0, learns: b[7]&flagLearns != 0, features: featuresOf(b[7]),
		origin: originFieldsOf(b[7]),
	}, true
}

// looksLike guesses the protocol of a stranger, for the log.
func looksLike(b []byte) string {
	switch {
	case b[0] == tlsHandshake && b[1] == 3:
		return "TLS, but this port is plain"
	case string(b[:4]) == "GET ", string(b[:4]) == "POST", string(b[:4]) == "HEAD", string(b[:4]) == "PUT ":
		return "HTTP"
	case string(b[:4]) == "PRI ":
		return "HTTP/2 or gRPC"
	}
	return fmt.Sprintf("% x", b[:8])
}

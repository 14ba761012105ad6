package epaxos

import (
	"encoding/binary"
	"fmt"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Numbers are encoded as varints, lists with their length before them. There is one encoding of each value.

func corrupt(what string, b []byte) error {
	return &protocol.CorruptError{What: what, Detail: fmt.Sprintf("%d bytes", len(b))}
}

func appendVector(dst []byte, v Vector) []byte {
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	dst = append(dst, byte(len(v)))
	for _, n := range v {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

func appendTouches(dst []byte, t Touches) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(t)))
	for _, class := range t {
		dst = binary.LittleEndian.AppendUint16(dst, class)
	}
	return dst
}

func appendIDs(dst []byte, ids []ID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, id := range ids {
		dst = appendID(dst, id)
	}
	return dst
}

func appendID(dst []byte, id ID) []byte {
	return binary.AppendUvarint(append(dst, id.Column), id.Number)
}

// reader decodes what was appended. After an invalid encoding failed is set and it returns zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) fail() {
	r.b, r.failed = nil, true
}

// ended reports whether everything was read and valid.
func (r *reader) ended() bool { return !r.failed && len(r.b) == 0 }

func (r *reader) byte() (b byte) {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	b, r.b = r.b[0], r.b[1:]
	return b
}

func (r *reader) number() uint64 {
	n, rest, ok := slots.Varint(r.b)
	r.b, r.failed = rest, r.failed || !ok
	return n
}

// count is the length of a list, at most most.
func (r *reader) count(most int) int {
	n := r.number()
	if n > uint64(most) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) vector() (v Vector) {
	n := int(r.byte())
	if n > len(r.b) {
		r.fail()
		return nil
	}
	for range n {
		v = append(v, r.number())
	}
	if n > 0 && v[n-1] == 0 {
		r.fail()
	}
	if r.failed {
		return nil
	}
	return v
}

func (r *reader) touches() (t Touches) {
	n := r.count(protocol.MaxKeys)
	for i := range n {
		if len(r.b) < 2 {
			r.fail()
			return nil
		}
		class := binary.LittleEndian.Uint16(r.b)
		if r.b = r.b[2:]; class >= Classes || i > 0 && class <= t[i-1] {
			r.fail()
			return nil
		}
		t = append(t, class)
	}
	return t
}

func (r *reader) id() ID { return ID{r.byte(), r.number()} }

func (r *reader) ids() (ids []ID) {
	n := r.count(maxAgainst)
	for range n {
		id := r.id()
		if r.failed || id.Column == 0 || id.Number == 0 {
			r.fail()
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

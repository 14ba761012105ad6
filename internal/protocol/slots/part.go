package slots

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/braidlog/braid/protocol"
)

// A part of a message is encoded as numbers of eight bytes, then flags and small numbers.

// Varint decodes a number that binary.AppendUvarint encoded, and returns the bytes after it. ok is false if there is
// none, or if its encoding could be shorter: each message has only one encoding.
func Varint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

// AppendNumbers appends numbers to a part.
func AppendNumbers(dst []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst
}

// Number is the i-th number of a part.
func Number(part []byte, i int) uint64 { return binary.LittleEndian.Uint64(part[8*i:]) }

// Flags encodes up to eight flags in a byte.
func Flags(flags ...bool) (b byte) {
	for i, is := range flags {
		if is {
			b |= 1 << i
		}
	}
	return b
}

// Flag reports whether the i-th flag of a byte is set.
func Flag(b byte, i int) bool { return b>>i&1 == 1 }

// CorruptPart indicates that a part does not have the size that its type has.
func CorruptPart(t protocol.MessageType, part []byte) error {
	return &protocol.CorruptError{What: "message", Detail: fmt.Sprintf("type %d with a part of %d bytes", t, len(part))}
}

// PartOf returns a message's part, or an empty one.
func PartOf[P any, PP interface {
	*P
	protocol.Part
}](m *protocol.Message) (p P) {
	if part, ok := m.Part.(PP); ok {
		p = *part
	}
	return p
}

// Words describe a part of a message for logs and scripts.
type Words []string

// Add adds words if is is true.
func (w *Words) Add(is bool, format string, args ...any) {
	if is {
		*w = append(*w, fmt.Sprintf(format, args...))
	}
}

func (w *Words) String() string { return strings.Join(*w, " ") }

package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/braidlog/braid/internal/store/sums"
)

// Large values are removed from a request before it is ordered. Records replace them in the command, which every
// member applies. The bytes are the command's body, which the log may keep in fragments. The prefix of such a command
// is, after its kind:
//
//	number of values, and for each its SHA-256, size and offset in the body
//	number of things that must not have changed, and for each the key, the end of its
//	range, the number of keys there and a revision
//
// with numbers as varints and byte strings after their length.

// unchanged is something that a client saw before its transaction was ordered, and that must
// still be so when it is applied.
type unchanged struct {
	key, end []byte
	count    int64 // of the keys in the range
	revision int64 // none of them was written after it
}

// prefix is the part before the request in the command.
func (m *extraction) prefix(u []unchanged) []byte {
	b := binary.AppendUvarint([]byte{kindLarge}, uint64(len(m.values)))
	for i := range m.values {
		v := &m.values[i]
		b = append(b, v.record.sum[:]...)
		b = binary.AppendUvarint(b, v.record.size)
		b = binary.AppendUvarint(b, uint64(v.offset))
	}
	b = binary.AppendUvarint(b, uint64(len(u)))
	for i := range u {
		b = appendBytes(appendBytes(b, u[i].key), u[i].end)
		b = binary.AppendUvarint(b, uint64(u[i].count))
		b = binary.AppendUvarint(b, uint64(u[i].revision))
	}
	return b
}

func appendBytes(b, more []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(more))), more...)
}

// decodeLarge reads a prefix and returns the request after it.
func (c *command) decodeLarge(b []byte) (rest []byte, err error) {
	d := sums.Decoder{Rest: b}
	n := d.Number()
	if n > uint64(len(b)) {
		d.Bad = true
	}
	c.values = make(map[record]uint32)
	for ; n > 0 && !d.Bad; n-- {
		var r record
		copy(r.sum[:], d.Take(uint64(len(r.sum))))
		r.size = d.Number()
		offset := d.Number()
		d.Bad = d.Bad || offset > math.MaxUint32 || r.size > math.MaxUint32
		c.values[r] = uint32(offset)
	}
	for n = d.Number(); n > 0 && !d.Bad; n-- {
		c.unchanged = append(c.unchanged, unchanged{
			key: d.Take(d.Number()), end: d.Take(d.Number()), count: int64(d.Number()), revision: int64(d.Number()),
		})
	}
	if d.Bad {
		return nil, fmt.Errorf("%w: large values", ErrBadCommand)
	}
	return d.Rest, nil
}

// setBody sets the body of a command. If the values are not within the body, the command is malformed.
func (c *command) setBody(ref *BodyRef) error {
	c.body = ref
	if len(c.values) == 0 {
		return nil
	}
	if ref == nil {
		return fmt.Errorf("%w: large values without a body", ErrBadCommand)
	}
	for r, offset := range c.values {
		if !fits(*ref, offset, r.size) {
			return fmt.Errorf("%w: %d bytes at %d of a body of %d", ErrBadCommand, r.size, offset, ref.Size)
		}
	}
	return nil
}

package store

import "encoding/binary"

// decoder reads numbers and byte strings. Past the end everything is zero and bad.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	n, width := binary.Uvarint(d.rest)
	if width <= 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[width:]
	return n
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	out := d.rest[:n:n]
	d.rest = d.rest[n:]
	return out
}

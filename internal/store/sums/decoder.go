package sums

import "encoding/binary"

// Decoder reads numbers and byte strings. Past the end everything is zero and bad.
type Decoder struct {
	Rest []byte
	Bad  bool
}

func (d *Decoder) Number() uint64 {
	n, width := binary.Uvarint(d.Rest)
	if width <= 0 {
		d.Bad = true
		return 0
	}
	d.Rest = d.Rest[width:]
	return n
}

func (d *Decoder) Take(n uint64) []byte {
	if n > uint64(len(d.Rest)) {
		d.Bad = true
		return nil
	}
	out := d.Rest[:n:n]
	d.Rest = d.Rest[n:]
	return out
}

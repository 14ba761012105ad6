package message

import (
	"encoding/binary"

	"github.com/braidlog/braid/protocol"
)

// LaneHigh says how far a disk holds a lane.
type LaneHigh struct {
	Lane protocol.Lane
	High uint64
}

// AppendHigh appends a lane and a number in it.
func AppendHigh(b []byte, lane protocol.Lane, n uint64) []byte {
	b = binary.AppendUvarint(b, uint64(lane.Member))
	b = binary.AppendUvarint(b, lane.Incarnation)
	return binary.AppendUvarint(b, n)
}

// NextHigh reads what AppendHigh wrote.
func NextHigh(b []byte) (lane protocol.Lane, n uint64, rest []byte, ok bool) {
	var v [3]uint64
	for i := range v {
		w := 0
		if v[i], w = binary.Uvarint(b); w <= 0 {
			return lane, 0, nil, false
		}
		b = b[w:]
	}
	return protocol.Lane{Member: protocol.MemberID(v[0]), Incarnation: v[1]}, v[2], b, v[0] != 0
}

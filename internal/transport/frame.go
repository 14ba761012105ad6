package transport

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A frame is a header and a body:
//
//	magic   2  0xb4 0x1d
//	kind    1
//	format  1  how far the format is above the first one (package format): 0, until there is a later one
//	stream  4  frames: the stream; requests and answers: the call's number
//	length  4  of the body
//	sum     4  CRC-32C of the twelve bytes before
//
// The header is checked before anything is allocated for the body. Bodies have no checksum here:
// entries and messages in them have their own, and a second skip megabytes is not free. Chunks of
// snapshots have none of their own, so each carries one.
const (
	headerSize = 16
	magic0     = 0xb4
	magic1     = 0x1d
)

type frameKind uint8

const (
	kindFrame     frameKind = 1 // a frame of Send
	kindPing      frameKind = 2 // nothing: the connection is alive
	kindRequest   frameKind = 3 // body: time left in ns (8), request
	kindAnswer    frameKind = 4 // body: the answer
	kindFailure   frameKind = 5 // body: the handler's error as text
	kindCancel    frameKind = 6 // the caller of a request no longer waits
	kindSnapMeta  frameKind = 7
	kindSnapChunk frameKind = 8 // body: CRC-32C of the data (4), data
	kindSnapEnd   frameKind = 9 // body: length of all data (8), CRC-32C of all data (4)
	kindSnapDone  frameKind = 10
	kindLast                = kindSnapDone
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	kind   frameKind
	stream uint32
	length uint32
	format byte
}

func appendHeader(b []byte, h header) []byte {
	at := len(b)
	b = append(b, magic0, magic1, byte(h.kind), h.format)
	b = binary.LittleEndian.AppendUint32(b, h.stream)
	b = binary.LittleEndian.AppendUint32(b, h.length)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// parseHeader reads a header of headerSize bytes; limit bounds the body.
func parseHeader(b []byte, limit int) (header, error) {
	_ = b[headerSize-1]
	if b[0] != magic0 || b[1] != magic1 {
		return header{}, &FrameError{fmt.Sprintf("begins with % x", b[:4])}
	}
	if sum := crc32.Checksum(b[:12], castagnoli); sum != binary.LittleEndian.Uint32(b[12:]) {
		return header{}, &FrameError{fmt.Sprintf("checksum of the header % x is wrong", b[:headerSize])}
	}
	h := header{frameKind(b[2]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]), b[3]}
	if h.kind == 0 || h.kind > kindLast {
		return header{}, &FrameError{fmt.Sprintf("unknown kind %d", b[2])}
	}
	if int64(h.length) > int64(limit) {
		return header{}, &FrameError{fmt.Sprintf("body of %d bytes, the limit is %d", h.length, limit)}
	}
	return h, nil
}

package protocol

import (
	"encoding/binary"
	"fmt"
)

// AppendCommand appends one command to a batch payload: its length as a uvarint, then
// its bytes.
func AppendCommand(dst, command []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(command)))
	return append(dst, command...)
}

// NextCommand splits the first command off a batch payload. It returns a [CorruptError]
// if the payload is malformed. The command aliases b.
func NextCommand(b []byte) (command, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, &CorruptError{What: "batch", Detail: fmt.Sprintf("command length in the last %d bytes", len(b))}
	}
	end := w + int(n)
	return b[w:end:end], b[end:], nil
}

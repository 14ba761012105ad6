package sys

import (
	"strings"
	"unsafe"
)

// Uncleared returns n bytes with any contents. The caller overwrites all of them, or drops them: make would clear them
// first, which for large buffers takes as long as copying does.
func Uncleared(n int) []byte {
	if n <= 0 {
		return nil
	}
	var b strings.Builder // the only one of the standard library whose memory is not cleared
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

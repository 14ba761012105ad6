package wal

import (
	"io"

	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/vfs"
)

// maxWrite is the most that one call writes. With larger writes the kernel used 3 to 10 times the CPU time per byte.
const maxWrite = 64 << 10

// gather writes the pieces one after the other, several with one system call if the file has a descriptor. It does not
// modify pieces: if the disk is full in the middle, the caller writes all of them again.
func gather(f vfs.File, pieces [][]byte, offset int64) error {
	fd, ok := vfs.Descriptor(f)
	if !ok {
		return writeEach(f, pieces, offset)
	}
	var vector [16][]byte
	for skip := 0; len(pieces) > 0; { // skip bytes of pieces[0] are written
		n, err := unix.Pwritev(fd, first(vector[:0], pieces, skip), offset)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return io.ErrShortWrite
		}
		offset += int64(n)
		for skip += n; len(pieces) > 0 && skip >= len(pieces[0]); {
			skip -= len(pieces[0])
			pieces = pieces[1:]
		}
	}
	return nil
}

// first appends to vector the first maxWrite bytes of the pieces after skip bytes of the first one, or less if the
// vector is full.
func first(vector, pieces [][]byte, skip int) [][]byte {
	left := maxWrite
	for _, p := range pieces {
		if left == 0 || len(vector) == cap(vector) {
			break
		}
		p = p[skip:min(len(p), skip+left)]
		skip = 0
		vector = append(vector, p)
		left -= len(p)
	}
	return vector
}

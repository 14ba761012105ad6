package limit

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/braidlog/braid/internal/vfs"
)

// leastPiece and mostPiece bound the pieces, in bytes, in which a log is filled with zeros; else a piece is as large as
// the largest command. Linux keeps a file in memory in pieces as large as those that were written first, and counts a
// whole piece as written to the disk if a part of it was. With larger pieces large batches cost less CPU.
const leastPiece, mostPiece = 16 << 10, 1 << 20

// logFile is a member's log: a file of a fixed size, which is overwritten in a circle. Nothing reads it while the
// cluster runs. One goroutine uses it.
type logFile struct {
	file      vfs.File
	size, end int64
	syncs     atomic.Int64 // may be read concurrently
}

// createLog makes a log of zeros, and syncs it: blocks that were written before are cheaper to overwrite than new ones.
func createLog(path string, size int64, command int) (*logFile, error) {
	f, err := vfs.OS.Create(path)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, min(max(leastPiece, command), mostPiece))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
	}
	if err = cmp.Or(err, f.Sync()); err != nil {
		_ = f.Close()
	}
	return &logFile{file: f, size: size}, err
}

// write writes a batch in one piece, at the beginning of the file if the space left at its end is too small.
func (l *logFile) write(b *batch) error {
	n := int64(len(b.frame))
	switch {
	case n > l.size:
		return fmt.Errorf("a batch of %d bytes is larger than the log of %d bytes", n, l.size)
	case l.end+n > l.size:
		l.end = 0
	}
	if _, err := l.file.WriteAt(b.frame, l.end); err != nil {
		return err
	}
	l.end += n
	return nil
}

// sync makes everything durable that was written.
func (l *logFile) sync() error {
	l.syncs.Add(1)
	return l.file.SyncData()
}

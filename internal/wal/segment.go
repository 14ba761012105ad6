package wal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
)

const (
	liveSuffix = ".wal"  // a segment of the log
	freeSuffix = ".free" // a file to be reused; dropped by Open
	tempSuffix = ".tmp"  // an unfinished file; dropped by Open
	lockName   = "LOCK"

	// minFree is the number of free files that are always kept.
	minFree = 4
)

// segment is one file of the log.
type segment struct {
	seq      uint64
	file     vfs.File
	capacity int64 // bytes of the file
	// filled: bytes before it were written once, so that overwriting them changes no metadata; see the costs in the
	// package's comment.
	filled       int64
	incarnations []incarnationSpan // ascending by offset
	// flaw is the damage of the first page or, if the file is short, of the length; in recovery.
	flaw  *CorruptError
	short bool
	refs  int // readers; guarded by Log.mu
	// removed: the file's name is removed; its last reader closes it. Guarded by Log.mu.
	removed bool
}

// incarnationSpan is the seed of checksums from an offset on.
type incarnationSpan struct {
	from int64
	salt uint32
}

func (s *segment) saltAt(offset int64) uint32 {
	for i := len(s.incarnations) - 1; i > 0; i-- {
		if s.incarnations[i].from <= offset {
			return s.incarnations[i].salt
		}
	}
	return s.incarnations[0].salt
}

func segmentName(seq uint64, suffix string) string { return fmt.Sprintf("%016x%s", seq, suffix) }

// parseName returns the number of a live segment's file.
func parseName(name string) (seq uint64, ok bool) {
	hex, ok := strings.CutSuffix(name, liveSuffix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	seq, err := strconv.ParseUint(hex, 16, 64)
	return seq, err == nil && seq > 0
}

func (l *Log) path(seq uint64, suffix string) string {
	return filepath.Join(l.dir, segmentName(seq, suffix))
}

// createSegment creates the empty segment seq durably, from a free file or a new one. Its space is reserved, so that
// a full disk is detected here and not in the middle of a batch. It may run concurrently with Append, once at a time.
func (l *Log) createSegment(seq uint64, capacity int64) (*segment, error) {
	s, err := l.reuseSegment(seq, capacity)
	if err == nil && s == nil {
		s, err = l.newFile(seq, capacity)
		err = noSpace(l.dir, err, capacity)
	}
	if err != nil {
		return nil, err
	}
	if err := l.names.Sync(); err != nil {
		s.file.Close()
		return nil, &FailedError{Op: "sync", Err: fmt.Errorf("%s: %w", l.dir, err)}
	}
	return s, nil
}

// reuseSegment turns a free file of this size into segment seq; nil if there is none.
func (l *Log) reuseSegment(seq uint64, capacity int64) (*segment, error) {
	l.mu.Lock()
	var old *segment
	for i, s := range l.free {
		if s.capacity == capacity && s.refs == 0 {
			old = s
			l.free = append(l.free[:i], l.free[i+1:]...)
			break
		}
	}
	l.mu.Unlock()
	if old == nil {
		return nil, nil
	}
	s := &segment{seq: seq, file: old.file, capacity: capacity, filled: old.filled}
	h := segmentHeader{version: l.version.Load(), seq: seq, capacity: capacity, identity: l.identity}
	from, to := l.path(old.seq, freeSuffix), l.path(seq, liveSuffix)
	op, err := "write", writeAt(s.file, h.encode(), 0)
	if err == nil {
		op, err = "sync", syncData(s.file)
	}
	if err == nil {
		op, err = "rename", l.fs.Rename(from, to)
	}
	if op == "write" && isFull(err) { // on copy-on-write file systems
		l.mu.Lock()
		l.free = append(l.free, old)
		l.mu.Unlock()
		return nil, noSpace(l.dir, err, segmentHeaderSize)
	}
	if err != nil {
		s.file.Close()
		return nil, &FailedError{Op: op, Err: fmt.Errorf("%s: %w", from, err)}
	}
	return s, nil
}

func (l *Log) newFile(seq uint64, capacity int64) (*segment, error) {
	h := segmentHeader{version: l.version.Load(), seq: seq, capacity: capacity, identity: l.identity}
	f, err := createFile(l.fs, l.path(seq, tempSuffix), l.path(seq, liveSuffix), h.encode(), capacity)
	if err != nil {
		return nil, err
	}
	return &segment{seq: seq, file: f, capacity: capacity, filled: segmentHeaderSize}, nil
}

// createFile creates a file of a fixed size that begins with header, and then renames it to name. The name is not
// durable yet.
func createFile(fs vfs.FS, temp, name string, header []byte, capacity int64) (vfs.File, error) {
	f, err := fs.Create(temp)
	if err != nil {
		return nil, &FailedError{Op: "create", Err: err}
	}
	op, err := "preallocate", preallocate(f, capacity)
	if err == nil {
		op, err = "write", writeAt(f, header, 0)
	}
	if err == nil {
		// Writing the last byte sets the file's length permanently.
		err = writeAt(f, []byte{0}, capacity-1)
	}
	if err == nil {
		op, err = "sync", f.Sync()
	}
	if err == nil {
		op, err = "rename", fs.Rename(temp, name)
	}
	if err != nil {
		f.Close()
		// Best effort: Open removes the rest.
		_ = fs.Remove(temp)
		return nil, &FailedError{Op: op, Err: fmt.Errorf("%s: %w", temp, err)}
	}
	return f, nil
}

// preallocate reserves the space; a file system that cannot is no error.
func preallocate(f vfs.File, capacity int64) error {
	err := sys.Again(func() error { return f.Preallocate(0, capacity) })
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return nil
	}
	return err
}

// noSpace turns a failure to create or write a file into a *FullError, if the disk is full or the process has no
// descriptor left: nothing was acknowledged, and the call can be repeated. It must not be used for a failed sync.
func noSpace(dir string, err error, need int64) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) && !sys.NoDescriptor(err) {
		return err
	}
	var failed *FailedError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return &FullError{Dir: dir, Need: need, Err: err}
}

// spaceMissing returns err if its only cause is that the disk has no space, or the process no descriptor.
func spaceMissing(err error) *FullError {
	full, _ := err.(*FullError)
	return full
}

// release moves the file of a segment that the log no longer needs to the pool, or removes it.
func (l *Log) release(s *segment) error {
	l.mu.Lock()
	keep := len(l.free) < max(minFree, l.maxFree) && s.capacity == l.segmentBytes
	l.mu.Unlock()
	if !keep {
		return l.remove(s)
	}
	name := l.path(s.seq, liveSuffix)
	if err := l.fs.Rename(name, l.path(s.seq, freeSuffix)); err != nil {
		return &FailedError{Op: "rename", Err: fmt.Errorf("%s: %w", name, err)}
	}
	l.mu.Lock()
	l.free = append(l.free, s)
	l.mu.Unlock()
	return nil
}

// remove deletes a segment's file. It is closed now or by its last reader.
func (l *Log) remove(s *segment) error {
	name := l.path(s.seq, liveSuffix)
	if err := l.fs.Remove(name); err != nil {
		return &FailedError{Op: "remove", Err: fmt.Errorf("%s: %w", name, err)}
	}
	l.mu.Lock()
	s.removed = true
	idle := s.refs == 0
	l.mu.Unlock()
	if idle {
		s.file.Close()
	}
	return nil
}

// rewrite writes bytes of a file again that may not be durable, before they are synced. After a sync that failed, which
// ended the process, they may be in the machine's memory only, and not dirty any more: a sync would succeed, and make
// nothing durable. A disk without space for that, on copy-on-write file systems, is no error.
func rewrite(f vfs.File, from, to int64) error {
	b := make([]byte, min(max(to-from, 0), readBytes))
	for from < to {
		n, err := readFull(f, b[:min(int64(len(b)), to-from)], from)
		if err == nil {
			err = writeAt(f, b[:n], from)
		}
		if err != nil && !isFull(err) {
			return err
		}
		if n == 0 || err != nil {
			return nil
		}
		from += int64(n)
	}
	return nil
}

// syncData makes a file's bytes durable.
func syncData(f vfs.File) error { return sys.Again(f.SyncData) }

func writeAt(f vfs.File, b []byte, offset int64) error {
	n, err := f.WriteAt(b, offset)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// readFull reads up to len(b) bytes; fewer only at the end of the file.
func readFull(f vfs.File, b []byte, offset int64) (int, error) {
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

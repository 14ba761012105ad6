package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/vfs"
)

const bodySuffix = ".bod"

// bodyFile is one file of bodies.
type bodyFile struct {
	seq      uint64
	file     vfs.File
	capacity int64 // bytes of the file
	salt     uint32
	durable  int64 // in Open: bytes before it were durable, as its records show
	// lost: bodies were lost in it whose owners are unknown. It is kept until the first Append, so that an owner that
	// could not continue gets the same error again.
	lost bool

	// Guarded by Bodies.mu:
	live    int64   // bytes of live records
	records []*held // in the order of their places; some are dead
	refs    int     // readers
	removed bool    // its name is removed; its last reader closes it
}

// held is the place of a stored body.
type held struct {
	meta   Body // without bytes
	file   *bodyFile
	offset int64 // of the record
	length uint32
	crc    uint32
	number uint64
	live   bool
	older  bool  // see Bodies.older
	bad    error // a *CorruptError, once it was found
}

func (h *held) size() int64 { return bodyRecordSize(int(h.length)) }

func (h *held) head() bodyHead {
	return bodyHead{meta: h.meta, kind: bodyData, offset: uint32(h.offset), number: h.number, length: h.length, crc: h.crc}
}

// parseBodyName returns the number in the name of a file with this suffix.
func parseBodyName(name, suffix string) (seq uint64, ok bool) {
	hex, ok := strings.CutSuffix(name, suffix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	seq, err := strconv.ParseUint(hex, 16, 64)
	return seq, err == nil && seq > 0
}

func (b *Bodies) path(seq uint64, suffix string) string {
	return filepath.Join(b.dir, segmentName(seq, suffix))
}

// nextFile returns an empty file in which a record of need bytes has space.
func (b *Bodies) nextFile(need int64) (*bodyFile, error) {
	capacity := max(b.segmentBytes, alignBody(segmentHeaderSize+need+bodyEndSize))
	if capacity > maxSegmentBytes {
		return nil, &TooLargeError{Bytes: need, Limit: maxRecordBytes}
	}
	next, err := b.awaitPrepared()
	if err != nil {
		return nil, err
	}
	if next != nil && next.capacity >= capacity {
		return next, nil
	}
	if next != nil {
		if err := b.retireFile(next); err != nil {
			return nil, err
		}
	}
	return b.makeFile(capacity)
}

// prepare makes the next file, concurrently with the calls that follow, once the current one is half full.
func (b *Bodies) prepare(background Background) {
	if b.err != nil || b.current == nil || b.preparing != nil || b.end < b.current.capacity/2 {
		return
	}
	p := &preparedBody{}
	b.preparing = p
	p.wait = background(func() { p.file, p.err = b.makeFile(b.segmentBytes) })
}

type preparedBody struct {
	wait func() // returns when the other fields are set
	file *bodyFile
	err  error
}

func (b *Bodies) awaitPrepared() (*bodyFile, error) {
	if b.preparing == nil {
		return nil, nil
	}
	p := b.preparing
	p.wait()
	b.preparing = nil
	var full *FullError
	if errors.As(p.err, &full) {
		return nil, nil // nothing was written, and there may be space now
	}
	return p.file, p.err
}

// makeFile makes an empty file durable under a name that was never used, from one that was dropped or newly created.
// It may run concurrently with Append, once at a time.
func (b *Bodies) makeFile(capacity int64) (*bodyFile, error) {
	b.mu.Lock()
	b.lastSeq++
	seq := b.lastSeq
	old := b.reuseFile(capacity)
	unsynced := b.freeUnsynced
	if old != nil { // it syncs the names first
		b.freeUnsynced = false
	}
	b.mu.Unlock()

	f := &bodyFile{seq: seq, capacity: capacity, salt: salt(b.identity, seq, 0)}
	h := segmentHeader{seq: seq, capacity: capacity, identity: b.identity}
	var err error
	if old != nil {
		f.file = old.file
		err = b.reuse(old, seq, h.page(bodyFileMagic), unsynced)
	} else {
		f.file, err = createFile(b.fs, b.path(seq, tempSuffix), b.path(seq, bodySuffix), h.page(bodyFileMagic), capacity)
		err = noSpace(b.dir, err, capacity)
	}
	if err != nil {
		return nil, err
	}
	if err := b.names.Sync(); err != nil {
		f.file.Close()
		return nil, &FailedError{Op: "sync", Err: fmt.Errorf("%s: %w", b.dir, err)}
	}
	return f, nil
}

// reuseFile returns a dropped file that fits and has no readers. The caller holds mu.
func (b *Bodies) reuseFile(capacity int64) *bodyFile {
	for i, f := range b.free {
		if f.capacity == capacity && f.refs == 0 {
			b.free = append(b.free[:i], b.free[i+1:]...)
			return f
		}
	}
	return nil
}

// reuse writes a new header into a dropped file and renames it. The removal of its old name must be durable first: a
// file under its old name without its header would be damage.
func (b *Bodies) reuse(old *bodyFile, seq uint64, header []byte, unsynced bool) error {
	from := b.path(old.seq, freeSuffix)
	op, err := "sync", error(nil)
	if unsynced {
		err = b.names.Sync()
	}
	if err == nil {
		op, err = "write", writeAt(old.file, header, 0)
	}
	if err == nil {
		op, err = "sync", syncData(old.file)
	}
	if err == nil {
		op, err = "rename", b.fs.Rename(from, b.path(seq, bodySuffix))
	}
	if op == "write" && isFull(err) { // on copy-on-write file systems
		b.mu.Lock()
		b.free = append(b.free, old)
		b.mu.Unlock()
		return noSpace(b.dir, err, segmentHeaderSize)
	}
	if err != nil {
		old.file.Close()
		return &FailedError{Op: op, Err: fmt.Errorf("%s: %w", from, err)}
	}
	return nil
}

// retireFile keeps a file without live bodies for reuse, or removes it.
func (b *Bodies) retireFile(f *bodyFile) error {
	name := b.path(f.seq, bodySuffix)
	b.mu.Lock()
	f.records = nil
	keep := len(b.free) < max(minFree, b.maxFree) && f.capacity == b.segmentBytes
	b.mu.Unlock()
	if keep {
		if err := b.fs.Rename(name, b.path(f.seq, freeSuffix)); err != nil {
			return &FailedError{Op: "rename", Err: fmt.Errorf("%s: %w", name, err)}
		}
		b.mu.Lock()
		b.free, b.freeUnsynced = append(b.free, f), true
		b.mu.Unlock()
		return nil
	}
	if err := b.fs.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &FailedError{Op: "remove", Err: fmt.Errorf("%s: %w", name, err)}
	}
	b.mu.Lock()
	f.removed = true
	idle := f.refs == 0
	b.mu.Unlock()
	if idle {
		f.file.Close()
	}
	return nil
}

// unref ends a reader's use of a file.
func (b *Bodies) unref(f *bodyFile) {
	b.mu.Lock()
	f.refs--
	last := f.refs == 0 && f.removed
	b.mu.Unlock()
	if last {
		f.file.Close()
	}
}

// readHeld reads the bytes of a body into buf, or a larger one, and verifies them.
func (b *Bodies) readHeld(h *held, buf []byte) ([]byte, error) {
	if buf == nil || cap(buf) < int(h.length) {
		buf = make([]byte, h.length)
	}
	buf = buf[:h.length]
	at := h.offset + bodyHeadSize
	if n, err := readFull(h.file.file, buf, at); err != nil {
		return nil, &ReadError{"read", b.path(h.file.seq, bodySuffix), err}
	} else if n < len(buf) {
		return nil, b.corrupt(h.file, h.offset, "body %d of instance %d: the file ends after %d of %d bytes", h.meta.Index,
			h.meta.Instance, n, len(buf))
	}
	if crc := checksum(buf); crc != h.crc {
		return nil, b.corrupt(h.file, h.offset, "body %d of instance %d: the checksum of its %d bytes is %08x, want %08x",
			h.meta.Index, h.meta.Instance, h.length, crc, h.crc)
	}
	return buf, nil
}

func (b *Bodies) corrupt(f *bodyFile, offset int64, format string, args ...any) *CorruptError {
	return &CorruptError{File: b.path(f.seq, bodySuffix), Offset: offset, Detail: fmt.Sprintf(format, args...)}
}

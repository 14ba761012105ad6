package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
)

// A mark file is next to the segments of a log, or the files of a store of bodies, and records how far they were
// durable. It is written after each sync and before the sync is acknowledged. It is not synced itself: it survives a
// crash of the process at once, and a power failure as soon as the kernel has written it back. An idle log, or one
// that is closed, syncs it. So bytes that it covers and that are missing are damage, and never a torn write. It has
// two slots, which are written in turn, so that one survives a torn write.
//
//	slot: magic 4 | crc 4 | number 8 | file 8 | end 8 | incarnation 4 | 0 …
const (
	markName     = "DURABLE"
	markSlotSize = 4096
	markSize     = 36
)

var markMagic = []byte{0xB7, 'd', 'u', 'r'}

// mark is how far something was durable.
type mark struct {
	number      uint64 // of the last batch, or of the last body
	seq         uint64 // of the current file
	end         int64  // bytes before it in that file were durable, and all earlier files
	incarnation uint32 // of the log
}

// markFile writes marks. Its methods are for the goroutine that syncs.
type markFile struct {
	file   vfs.File
	path   string
	seed   uint32
	last   mark // the last one that was written
	slot   int  // its slot
	synced mark // what is certainly on disk
	page   [markSize]byte
}

// readMark reads the mark file of a directory. If there is none, as with a log of an earlier version, it returns the
// zero mark and a markFile without a file. damage: it has no good mark, so only the log itself shows what was
// durable.
func readMark(fsys vfs.FS, dir string, identity []byte) (m *markFile, damage *CorruptError, err error) {
	m = &markFile{path: filepath.Join(dir, markName), seed: salt(identity, 0, 0)}
	if _, err := fsys.Stat(m.path); errors.Is(err, fs.ErrNotExist) {
		return m, nil, nil
	} else if err != nil {
		return nil, nil, &ReadError{"stat", m.path, err}
	}
	if m.file, err = fsys.OpenReadWrite(m.path); err != nil {
		return nil, nil, &ReadError{"open", m.path, err}
	}
	page := make([]byte, 2*markSlotSize)
	n, err := readFull(m.file, page, 0)
	if err != nil { // without its contents the end of the log is unknown
		m.close()
		return nil, nil, &ReadError{"read", m.path, err}
	}
	bad := n < len(page)
	for slot := range 2 {
		at, ok := decodeMark(page[slot*markSlotSize:], m.seed)
		bad = bad || !ok
		if ok && at.after(m.last) {
			m.last, m.slot = at, slot
		}
	}
	if bad && m.last == (mark{}) {
		damage = &CorruptError{File: m.path, Detail: "no good mark in it"}
	}
	return m, damage, nil
}

func (a mark) after(b mark) bool {
	return a.seq > b.seq || a.seq == b.seq && (a.end > b.end || a.end == b.end && a.number > b.number)
}

// decodeMark reads a slot; ok is false if it is neither a mark nor empty.
func decodeMark(b []byte, seed uint32) (m mark, ok bool) {
	b = b[:markSize]
	if bytes.Equal(b, make([]byte, markSize)) {
		return m, true
	}
	m = mark{
		number: binary.LittleEndian.Uint64(b[8:]), seq: binary.LittleEndian.Uint64(b[16:]),
		end: int64(binary.LittleEndian.Uint64(b[24:])), incarnation: binary.LittleEndian.Uint32(b[32:]),
	}
	if !bytes.Equal(b[:4], markMagic) || binary.LittleEndian.Uint32(b[4:]) != crc32.Update(seed, castagnoli, b[8:]) {
		return mark{}, false
	}
	return m, true
}

// create makes the file if it is missing. names is the open directory.
func (m *markFile) create(fsys vfs.FS, dir string, names vfs.File) (err error) {
	if m.file != nil {
		return nil
	}
	page := make([]byte, 2*markSlotSize)
	if m.file, err = createFile(fsys, m.path+tempSuffix, m.path, page[:markSize], int64(len(page))); err != nil {
		if err = noSpace(dir, err, int64(len(page))); isFull(err) && !sys.NoDescriptor(err) {
			return nil // the log is more important; the next Open tries again
		}
		return err
	}
	if err := names.Sync(); err != nil {
		return &FailedError{Op: "sync", Err: fmt.Errorf("%s: %w", dir, err)}
	}
	return nil
}

// put writes a mark into the slot that does not have the last one.
func (m *markFile) put(at mark) error {
	if at == m.last || m.file == nil {
		return nil
	}
	b := m.page[:]
	copy(b, markMagic)
	binary.LittleEndian.PutUint64(b[8:], at.number)
	binary.LittleEndian.PutUint64(b[16:], at.seq)
	binary.LittleEndian.PutUint64(b[24:], uint64(at.end))
	binary.LittleEndian.PutUint32(b[32:], at.incarnation)
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(m.seed, castagnoli, b[8:]))
	slot := 1 - m.slot
	switch err := writeAt(m.file, b, int64(slot*markSlotSize)); {
	case isFull(err): // on copy-on-write file systems: the last mark remains valid
		return nil
	case err != nil:
		return &FailedError{Op: "write", Err: fmt.Errorf("%s: %w", m.path, err)}
	}
	m.last, m.slot = at, slot
	return nil
}

// sync makes the last mark durable.
func (m *markFile) sync() error {
	if m.file == nil || m.synced == m.last {
		return nil
	}
	if err := syncData(m.file); err != nil {
		return &FailedError{Op: "sync", Err: fmt.Errorf("%s: %w", m.path, err)}
	}
	m.synced = m.last
	return nil
}

// durable is the offset up to which a file certainly was durable.
func (m *markFile) durable(seq uint64) int64 {
	if m.last.seq == seq {
		return m.last.end
	}
	return 0
}

func isFull(err error) bool {
	var full *FullError
	return errors.As(err, &full) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (m *markFile) close() {
	if m != nil && m.file != nil {
		m.file.Close()
		m.file = nil
	}
}

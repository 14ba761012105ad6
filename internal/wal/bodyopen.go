package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

// OpenBodies opens the bodies of a directory, or creates a store. It reads heads, not bytes, except for bytes that
// may not be durable: they are cut at the first record that is not complete. Damage elsewhere costs only the body in
// question. It fails with *IdentityError if the bodies are another member's, with *LockedError if they are open.
func OpenBodies(o BodiesOptions) (*Bodies, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	o.SegmentBytes = alignBody(min(max(o.SegmentBytes, minSegmentBytes), maxSegmentBytes-bodyAlign))
	if len(o.Identity) > maxIdentity {
		return nil, &TooLargeError{Bytes: int64(len(o.Identity)), Limit: maxIdentity}
	}
	b := &Bodies{home: home{fs: o.FS, dir: o.Dir, identity: append([]byte(nil), o.Identity...),
		segmentBytes: o.SegmentBytes},
		index: map[bodyKey]*held{}}
	if err := b.open(); err != nil {
		b.closeFiles()
		return nil, err
	}
	return b, nil
}

func (b *Bodies) open() error {
	if err := durable.MakeDir(b.fs, b.dir, 0o755); err != nil {
		return err
	}
	lock, err := b.fs.Lock(filepath.Join(b.dir, lockName))
	if err != nil {
		return &LockedError{Dir: b.dir, Err: err}
	}
	b.lock = lock
	if b.names, err = b.fs.OpenDir(b.dir); err != nil {
		return &ReadError{"open", b.dir, err}
	}
	mark, damage, err := readMark(b.fs, b.dir, b.identity)
	if err != nil {
		return err
	}
	b.marks, b.lastSeq = mark, mark.last.seq // that file may have been removed since
	if damage != nil {
		b.damage = append(b.damage, damage)
	}
	names, err := b.fs.List(b.dir)
	if err != nil {
		return &ReadError{"list", b.dir, err}
	}
	sort.Strings(names)
	if err := b.openFiles(names); err != nil {
		return err
	}
	if err := b.scanFiles(); err != nil {
		return err
	}
	if err := b.marks.create(b.fs, b.dir, b.names); err != nil {
		return err
	}
	b.opened = b.number
	return b.cleanUp(names)
}

// openFiles opens and checks all files that may hold bodies.
func (b *Bodies) openFiles(names []string) error {
	for _, name := range names {
		seq, ok := parseBodyName(name, bodySuffix)
		if !ok {
			continue
		}
		f, err := b.fs.OpenReadWrite(filepath.Join(b.dir, name))
		if err != nil {
			return &ReadError{"open", name, err}
		}
		file := &bodyFile{seq: seq, file: f, salt: salt(b.identity, seq, 0)}
		b.files = append(b.files, file)
		b.lastSeq = max(b.lastSeq, seq)
		if err := b.header(file); err != nil {
			return err
		}
	}
	return nil
}

// header checks a file's first page and its length. If the page is damaged, the records
// may be whole nevertheless.
func (b *Bodies) header(f *bodyFile) error {
	name := b.path(f.seq, bodySuffix)
	info, err := f.file.Stat()
	if err != nil {
		return &ReadError{"stat", name, err}
	}
	f.capacity = min(info.Size(), maxSegmentBytes)
	page := make([]byte, segmentHeaderSize)
	n, err := readFull(f.file, page, 0)
	if err != nil {
		return &ReadError{"read", name, err}
	}
	h, err := decodePage(page[:n], bodyFileMagic, firstVersion)
	var version *VersionError
	switch {
	case errors.As(err, &version):
		version.File = name
		return version
	case err != nil:
		b.damaged(f, b.corrupt(f, 0, "%v", err), false)
	case !bytes.Equal(h.identity, b.identity):
		return &IdentityError{Dir: b.dir, Have: h.identity, Want: b.identity}
	case h.seq != f.seq:
		b.damaged(f, b.corrupt(f, 16, "it is file %d by its header", h.seq), true)
	case info.Size() != h.capacity:
		b.damaged(f, b.corrupt(f, info.Size(), "the file has %d bytes, its header says %d", info.Size(), h.capacity), true)
	}
	return nil
}

// damaged records damage, and whether it cost bodies whose owners are unknown.
func (b *Bodies) damaged(f *bodyFile, err *CorruptError, lost bool) {
	b.damage = append(b.damage, err)
	f.lost = f.lost || lost
	if lost && b.lost == nil {
		b.lost = err
	}
}

// scanFiles indexes what the files hold. Only the last one with records may have an end that
// is not durable: before a file gets its first record the one before it is closed durably.
func (b *Bodies) scanFiles() error {
	w := readBuffer{step: int(min(readBytes, b.segmentBytes))}
	last := true
	var all [][]bodyItem
	for i := len(b.files) - 1; i >= 0; i-- {
		f := b.files[i]
		items, end, closed, err := b.scan(&w, f)
		if err != nil {
			return err
		}
		marked := b.marks.durable(f.seq)
		switch {
		case last && len(items) == 0 && marked <= segmentHeaderSize:
			// Never written, or only in part. It becomes a free file, because it has no body.
		case last:
			last = false
			f.durable = max(f.durable, marked)
			if end < marked && !closed {
				b.damaged(f, b.corrupt(f, end, "no head of a body here, but %s says that all before %d was durable", b.marks.path,
					marked), true)
				end = min(marked, f.capacity-bodyEndSize)
			}
			if items, err = b.cut(f, items, end, closed); err != nil {
				return err
			}
		case !closed:
			b.damaged(f, b.corrupt(f, end, "no head of a body here, and nothing says that the file ends"), true)
		}
		all = append(all, items)
	}
	slices.Reverse(all)
	for i, items := range all {
		for _, item := range items {
			b.item(b.files[i], item)
		}
	}
	return nil
}

func (b *Bodies) scan(w *readBuffer, f *bodyFile) (items []bodyItem, end int64, closed bool, err error) {
	// Heads are far apart; so reads are about a page long.
	near := readBuffer{step: segmentHeaderSize}
	s := bodyScanner{buffer: &near, ahead: w, file: f, salt: f.salt, capacity: f.capacity}
	end, closed, err = s.run(func(item bodyItem) error {
		items = append(items, item)
		return nil
	})
	if err != nil {
		return nil, 0, false, &ReadError{"read", b.path(f.seq, bodySuffix), err}
	}
	f.durable = s.durable
	return items, end, closed, nil
}

// item indexes a record, or notes damage.
func (b *Bodies) item(f *bodyFile, item bodyItem) {
	if item.flaw != "" {
		b.damaged(f, b.corrupt(f, item.at, "%s", item.flaw), item.lost)
	}
	if item.lost || item.head.kind != bodyData {
		return
	}
	h := item.head
	b.number = max(b.number, h.number)
	one := &held{meta: h.meta, file: f, offset: int64(h.offset), length: h.length, crc: h.crc, number: h.number}
	f.records = append(f.records, one)
	switch old := b.index[bodyKey{h.meta.Instance, h.meta.Index}]; {
	case old == nil || old.number <= one.number:
		b.hold(one)
	case old.meta.Term != one.meta.Term:
		one.live, one.older = true, true
		f.live += one.size()
		b.older = append(b.older, one)
	}
}

// cut finds the end of the durable part of the last file, from the mark or from the records, and closes the file
// there.
func (b *Bodies) cut(f *bodyFile, items []bodyItem, end int64, closed bool) ([]bodyItem, error) {
	for i, item := range items {
		if item.at < f.durable {
			continue
		}
		whole, err := b.whole(f, item)
		if err != nil {
			return nil, err
		}
		if !whole {
			items, end, closed = items[:i], item.at, false
			break
		}
	}
	if err := rewrite(f.file, max(f.durable, segmentHeaderSize), end); err != nil {
		return nil, &FailedError{Op: "write", Err: err}
	}
	if closed {
		// If only the process died, it may be only in the machine's memory.
		if err := syncData(f.file); err != nil {
			return nil, &FailedError{Op: "sync", Err: err}
		}
		return items, nil
	}
	if end+bodyEndSize > f.capacity {
		return items, &CorruptError{File: b.path(f.seq, bodySuffix), Offset: end,
			Detail: "no space for the record that closes the file"}
	}
	record := make([]byte, bodyEndSize)
	h := bodyHead{kind: bodyEnd, offset: uint32(end), durable: uint32(end)}
	h.encode(record, false, f.salt)
	h.encode(record[bodyHeadSize:], true, f.salt)
	// The bytes before it must be durable first, because it records that.
	err := syncData(f.file)
	if err == nil {
		err = writeAt(f.file, record, end)
	}
	if err == nil {
		err = syncData(f.file)
	}
	if err != nil {
		return nil, &FailedError{Op: "sync", Err: err}
	}
	return items, nil
}

// whole reports whether a record that may not be durable is complete.
func (b *Bodies) whole(f *bodyFile, item bodyItem) (bool, error) {
	if item.flaw != "" {
		return false, nil
	}
	h := item.head
	one := &held{meta: h.meta, file: f, offset: int64(h.offset), length: h.length, crc: h.crc, number: h.number}
	err := b.verifyHeld(one)
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return false, nil
	}
	return err == nil, err
}

// cleanUp drops files without bodies, keeps a few that can be reused, and removes unfinished files.
func (b *Bodies) cleanUp(names []string) error {
	for _, name := range names {
		seq, isFree := parseBodyName(name, freeSuffix)
		stale := strings.HasSuffix(name, tempSuffix)
		if isFree {
			b.lastSeq = max(b.lastSeq, seq)
			// A rename that was not durable may have left both names.
			both := slices.ContainsFunc(b.files, func(f *bodyFile) bool { return f.seq == seq })
			stale = both || len(b.free) >= minFree || !b.keepFree(seq)
		}
		if !stale {
			continue
		}
		if err := b.fs.Remove(filepath.Join(b.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("wal: remove %s: %w", name, err)
		}
	}
	return b.freeFiles()
}

// keepFree keeps a file for reuse if it belongs to this store.
func (b *Bodies) keepFree(seq uint64) bool {
	f, err := b.fs.OpenReadWrite(b.path(seq, freeSuffix))
	if err != nil {
		return false
	}
	page := make([]byte, segmentHeaderSize)
	n, err := readFull(f, page, 0)
	ok := false
	if err == nil {
		h, herr := decodePage(page[:n], bodyFileMagic, firstVersion)
		info, serr := f.Stat()
		ok = herr == nil && serr == nil && h.capacity == b.segmentBytes && info.Size() == h.capacity &&
			bytes.Equal(h.identity, b.identity)
		// It may have been in the process of becoming another file.
		b.lastSeq = max(b.lastSeq, h.seq)
	}
	if !ok {
		f.Close()
		return false
	}
	b.free = append(b.free, &bodyFile{seq: seq, file: f, capacity: b.segmentBytes})
	b.freeUnsynced = true
	return true
}

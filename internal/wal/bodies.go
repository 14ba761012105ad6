package wal

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/braidlog/braid/internal/vfs"
)

// Body is the large part of an entry, in the form in which it is stored: all of its bytes or a row of its code.
// Fields other than Instance and Index are opaque to the store.
type Body struct {
	Instance    uint32
	Index, Term uint64
	Form, K     uint8
	// Size and Digest describe the whole body, in any form.
	Size, Digest uint32
	Bytes        []byte
	// Checksum is the CRC-32C of Bytes if Checked. Otherwise Append computes it.
	Checksum uint32
	Checked  bool
}

// BodiesOptions are the options with which a store of bodies is opened.
type BodiesOptions struct {
	FS  vfs.FS // default vfs.OS
	Dir string // made if it does not exist
	// Identity identifies the owner; see Options.
	Identity []byte
	// SegmentBytes is the size of a file: default 64 MiB. A larger body gets a larger file.
	SegmentBytes int64
}

// Bodies is the store of the bodies of a member's entries, of all instances, next to its log. Append, Sync, Compact,
// Retain and Close may be called by one goroutine at a time; all other methods may run at the same time. Like Log it
// has no goroutine, clock or randomness of its own.
//
// Once it is durable, an appended body replaces the stored body of its entry, or of another entry with the same index
// and another term. After a crash one of the two is there. A damaged body is reported when it is read; the others
// stay as they are. Bodies that were dropped may be there again after a crash; see Retain.
type Bodies struct {
	home

	// mu guards everything below up to the blank line, and the fields of files that are marked so.
	mu    sync.Mutex
	index map[bodyKey]*held
	count int // bodies in index that have bytes
	// settled is the number of the last body that is durable together with its entry.
	settled uint64
	older   []*held // live, but replaced in index by the body of another entry; see Settle
	bodySegments
	// buf are small bodies not yet written, which belong at start of the current file.
	buf        []byte
	start, end int64 // end = start + len(buf)
	damage     []*CorruptError
	closed     bool
	retained   bool // Retain was called

	number  uint64 // of the last body appended
	opened  uint64 // number when Open returned
	lost    *CorruptError
	durable int64 // durable bytes of the current file
	dirty   bool  // bytes were written since
	sealed  bool  // the last record is a seal
	ended   bool  // the current file has its last record, not yet written or synced
	marks   *markFile
	compaction
	preparing *preparedBody
	err       error // the error that shut the store
}

// bodySegments are the files of bodies.
type bodySegments struct {
	files []*bodyFile // ascending; the last is the current one, if there is one
	free  []*bodyFile // files to be reused
	// freeUnsynced: the names of some in free are not durable yet.
	freeUnsynced bool
	maxFree      int
	lastSeq      uint64
	current      *bodyFile // nil before the first Append
}

// compaction is the progress of Compact.
type compaction struct {
	// victim is the file that Compact empties; of its records those before at are moved.
	victim  *bodyFile
	at      int
	scratch []byte
}

type bodyKey struct {
	instance uint32
	index    uint64
}

// bodyBufferBytes is the size of the buffer that gathers small bodies.
const bodyBufferBytes = 256 << 10

// Append adds a body. It is durable after the next Sync, and replaces the stored body of the same entry. A body of
// form 0 without bytes records that none is stored; it replaces nothing. The caller may reuse the bytes when Append
// returns. An error shuts the store, except a *FullError: then the disk had no space, nothing was added, and the
// caller may try again.
func (b *Bodies) Append(body Body) error {
	if b.err != nil {
		return b.err
	}
	if len(body.Bytes) > maxRecordBytes {
		return b.fail("append", &TooLargeError{Bytes: int64(len(body.Bytes)), Limit: maxRecordBytes})
	}
	if body.Form == 0 && len(body.Bytes) == 0 && b.holds(&body) {
		return nil
	}
	h, err := b.put(&body, b.number+1)
	if err != nil {
		return b.fail("append", err)
	}
	b.number++
	b.mu.Lock()
	b.retained = true
	b.hold(h)
	b.mu.Unlock()
	return nil
}

// holds reports whether a body of exactly this entry is stored.
func (b *Bodies) holds(body *Body) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.index[bodyKey{body.Instance, body.Index}]
	return h != nil && h.meta.Term == body.Term
}

// hold makes h the stored body of its entry. The caller holds mu.
func (b *Bodies) hold(h *held) {
	key := bodyKey{h.meta.Instance, h.meta.Index}
	switch old := b.index[key]; {
	case old == nil:
	case old.meta.Term == h.meta.Term:
		b.drop(old)
	default:
		old.older = true
		b.older = append(b.older, old)
		b.unindex(old)
	}
	h.live = true
	h.file.live += h.size()
	b.place(key, h)
}

func (b *Bodies) place(key bodyKey, h *held) {
	b.index[key] = h
	if h.length > 0 {
		b.count++
	}
}

// drop drops a body. The caller holds mu.
func (b *Bodies) drop(h *held) {
	h.live = false
	h.file.live -= h.size()
	b.unindex(h)
}

// unindex removes h from the index. The caller holds mu.
func (b *Bodies) unindex(h *held) {
	delete(b.index, bodyKey{h.meta.Instance, h.meta.Index})
	if h.length > 0 {
		b.count--
	}
}

// forget drops the bodies in older. The caller holds mu.
func (b *Bodies) forget(h *held) {
	h.live, h.older = false, false
	h.file.live -= h.size()
}

// LogDurable indicates that the log is durable, and with it the entries of the bodies appended so far. Until then the
// body of a replaced entry is kept, because after a crash the log may still have the replaced entry. Writer calls it
// after each sync.
func (b *Bodies) LogDurable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.older {
		b.forget(h)
	}
	clear(b.older)
	b.older = b.older[:0]
	b.settled = b.number
}

// put writes a record, or buffers it if it is small. The result is not in the index yet.
func (b *Bodies) put(body *Body, number uint64) (*held, error) {
	size := bodyRecordSize(len(body.Bytes))
	if err := b.makeSpace(size); err != nil {
		return nil, err
	}
	meta := *body
	meta.Bytes, meta.Checksum, meta.Checked = nil, 0, false
	crc := body.Checksum
	if !body.Checked {
		crc = checksum(body.Bytes)
	}
	h := &held{meta: meta, file: b.current, offset: b.end, length: uint32(len(body.Bytes)), crc: crc, number: number}
	head := h.head()
	head.durable = uint32(b.durable)
	b.dirty, b.sealed = true, false
	if len(body.Bytes) < largePart {
		if err := b.appendSmall(&head, body.Bytes); err != nil {
			return nil, err
		}
	} else if err := b.write(&head, body.Bytes); err != nil {
		return nil, err
	}
	b.mu.Lock()
	h.file.records = append(h.file.records, h)
	b.mu.Unlock()
	return h, nil
}

// makeSpace starts another file if a record of this size does not fit into the current one.
func (b *Bodies) makeSpace(size int64) error {
	if b.current != nil && !b.ended && b.end+size+bodyEndSize <= b.current.capacity {
		return nil
	}
	if b.current != nil {
		// In this order, because the new file must not be lost if closing fails.
		if err := b.closeCurrent(); err != nil {
			return err
		}
	}
	next, err := b.nextFile(size)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.files = append(b.files, next)
	b.current, b.start, b.end = next, segmentHeaderSize, segmentHeaderSize
	b.mu.Unlock()
	b.durable = segmentHeaderSize
	return nil
}

// closeCurrent makes the current file durable, with the record that closes it.
func (b *Bodies) closeCurrent() error {
	if !b.ended {
		if err := b.putMark(bodyEnd); err != nil {
			return err
		}
		b.ended = true
	}
	if err := b.flush(); err != nil {
		return err
	}
	if err := syncData(b.current.file); err != nil {
		return &FailedError{Op: "sync", Err: err}
	}
	if err := b.synced(); err != nil {
		return err
	}
	b.ended = false
	b.mu.Lock()
	b.current = nil
	b.mu.Unlock()
	return nil
}

// synced records that everything written is durable.
func (b *Bodies) synced() error {
	b.dirty, b.durable = false, b.end
	return b.marks.put(mark{b.number, b.current.seq, b.start, 0})
}

func (b *Bodies) putMark(kind bodyKind) error {
	return b.appendSmall(&bodyHead{kind: kind, offset: uint32(b.end), durable: uint32(b.durable)}, nil)
}

// appendSmall appends a small record to the buffer.
func (b *Bodies) appendSmall(h *bodyHead, data []byte) error {
	size := int(bodyRecordSize(len(data)))
	if b.buf == nil {
		b.buf = make([]byte, 0, bodyBufferBytes)
	}
	if len(b.buf)+size > cap(b.buf) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	from := len(b.buf)
	b.buf = b.buf[:from+size]
	record := b.buf[from:]
	h.encode(record, false, b.current.salt)
	clear(record[bodyHeadSize+copy(record[bodyHeadSize:], data):])
	h.encode(record[size-bodyHeadSize:], true, b.current.salt)
	b.end += int64(size)
	return nil
}

// write writes the buffer, and then a large record without copying its bytes.
func (b *Bodies) write(h *bodyHead, data []byte) error {
	var head, tail [2 * bodyHeadSize]byte
	pad := bodyRecordSize(len(data)) - bodyEndSize - int64(len(data))
	h.encode(head[:], false, b.current.salt)
	h.encode(tail[pad:], true, b.current.salt)
	pieces := make([][]byte, 0, 4)
	if len(b.buf) > 0 {
		pieces = append(pieces, b.buf)
	}
	pieces = append(pieces, head[:bodyHeadSize], data, tail[:pad+bodyHeadSize])
	if err := gather(b.current.file, pieces, b.start); err != nil {
		return noSpace(b.dir, &FailedError{Op: "write", Err: err}, int64(len(data)))
	}
	b.written(h.end())
	return nil
}

// flush writes the buffer.
func (b *Bodies) flush() error {
	if len(b.buf) == 0 {
		return nil
	}
	if err := writeAt(b.current.file, b.buf, b.start); err != nil {
		return noSpace(b.dir, &FailedError{Op: "write", Err: err}, int64(len(b.buf)))
	}
	b.written(b.end)
	return nil
}

// written indicates that the current file has everything up to end.
func (b *Bodies) written(end int64) {
	b.mu.Lock()
	b.buf, b.start, b.end = b.buf[:0], end, end
	b.mu.Unlock()
}

// fail shuts the store. It does not if the disk had no space, because the call can be repeated.
func (b *Bodies) fail(op string, err error) error {
	if full := spaceMissing(err); full != nil {
		return full
	}
	if b.err == nil {
		var failed *FailedError
		if errors.As(err, &failed) {
			b.err = failed
		} else {
			b.err = &FailedError{Op: op, Err: err}
		}
	}
	return b.err
}

// Sync makes everything appended durable, and removes files that are not needed. A failed sync shuts the store: every
// later call returns the same *FailedError.
func (b *Bodies) Sync() error {
	if b.err != nil {
		return b.err
	}
	if b.dirty && b.current != nil {
		if err := b.flush(); err != nil {
			return b.fail("write", err)
		}
		if err := syncData(b.current.file); err != nil {
			return b.fail("sync", err)
		}
		if err := b.synced(); err != nil {
			return b.fail("mark", err)
		}
	}
	if err := b.freeFiles(); err != nil {
		return b.fail("free", err)
	}
	return nil
}

// seal writes a record that everything before it is durable, so that damage to the last body is not mistaken for a
// torn write. The seal need not be durable; the mark with the same information is.
func (b *Bodies) seal() error {
	if b.err == nil {
		if err := b.marks.sync(); err != nil {
			return b.fail("mark", err)
		}
	}
	if b.err != nil || b.current == nil || b.sealed || b.dirty || b.ended || b.end == segmentHeaderSize ||
		b.end+2*bodyEndSize > b.current.capacity {
		return b.err
	}
	err := b.putMark(bodySeal)
	if err == nil {
		err = b.flush()
	}
	if spaceMissing(err) != nil {
		return nil // it is not needed
	}
	if err != nil {
		return b.fail("write", err)
	}
	b.sealed = true
	return nil
}

// Find returns the last appended body of an entry, without its bytes.
func (b *Bodies) Find(instance uint32, index uint64) (Body, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.index[bodyKey{instance, index}]; h != nil {
		return h.meta, true
	}
	return Body{}, false
}

// Durable reports whether the result of Find would survive a crash now: both the body and the entry are durable.
func (b *Bodies) Durable(instance uint32, index uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.index[bodyKey{instance, index}]
	return h != nil && h.number <= max(b.settled, b.opened)
}

// Read returns the stored body of an entry, with verified bytes, which belong to the caller. It returns
// *NotFoundError or *CorruptError.
func (b *Bodies) Read(instance uint32, index uint64) (Body, error) {
	h, gathered, err := b.acquire(instance, index)
	if err != nil {
		return Body{}, err
	}
	body := h.meta
	if gathered != nil {
		body.Bytes = gathered
		return body, nil
	}
	body.Bytes, err = b.readHeld(h, nil)
	b.unref(h.file)
	b.note(h, err)
	if err != nil {
		return Body{}, err
	}
	return body, nil
}

// acquire finds a body and keeps its file from being reused; or returns the bytes if they were not written yet.
func (b *Bodies) acquire(instance uint32, index uint64) (h *held, gathered []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.index == nil {
		return nil, nil, ErrClosed
	}
	h = b.index[bodyKey{instance, index}]
	if h == nil {
		return nil, nil, &NotFoundError{Instance: instance, Index: index}
	}
	if h.file == b.current && h.offset >= b.start {
		from := h.offset - b.start + bodyHeadSize
		return h, append([]byte{}, b.buf[from:from+int64(h.length)]...), nil
	}
	h.file.refs++
	return h, nil, nil
}

// note records whether a body is damaged.
func (b *Bodies) note(h *held, err error) {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		b.mu.Lock()
		h.bad = corrupt
		b.mu.Unlock()
	}
}

// Each calls f for all bodies in ascending order, without their bytes, until it returns false.
func (b *Bodies) Each(f func(Body) bool) {
	for _, body := range b.all() {
		if !f(body) {
			return
		}
	}
}

func (b *Bodies) all() []Body {
	b.mu.Lock()
	all := make([]Body, 0, len(b.index))
	for _, h := range b.index {
		all = append(all, h.meta)
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y Body) int {
		return cmp.Or(cmp.Compare(x.Instance, y.Instance), cmp.Compare(x.Index, y.Index))
	})
	return all
}

// Count is the number of stored bodies that have bytes.
func (b *Bodies) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Size is the bytes of the stored bodies, and the bytes of their files on disk. Files kept for reuse are not counted.
func (b *Bodies) Size() (live, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.files {
		live += f.live
		total += f.capacity
	}
	return live, total
}

// Spare is the bytes of files that are kept for reuse.
func (b *Bodies) Spare() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int64
	for _, f := range b.free {
		n += f.capacity
	}
	return n
}

// Close makes everything appended durable, seals the store and unlocks the directory. It returns the store's
// *FailedError if it had failed.
func (b *Bodies) Close() error {
	if b.err == ErrClosed {
		return nil
	}
	err := b.Sync()
	if err == nil {
		err = b.seal()
	}
	if err == nil && b.current != nil {
		if err = syncData(b.current.file); err == nil {
			if err = b.synced(); err == nil {
				err = b.marks.sync()
			}
		}
		if err != nil {
			err = b.fail("sync", err)
		}
	}
	next, perr := b.awaitPrepared()
	if next != nil {
		next.file.Close()
	}
	if err == nil {
		err = perr
	}
	b.closeFiles()
	b.err = ErrClosed
	return err
}

func (b *Bodies) closeFiles() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range append(slices.Clone(b.files), b.free...) {
		f.removed = true
		if f.refs == 0 {
			f.file.Close()
		}
	}
	b.files, b.free, b.current, b.closed = nil, nil, nil, true
	b.marks.close()
	if b.names != nil {
		b.names.Close()
		b.names = nil
	}
	if b.lock != nil {
		b.lock.Close()
		b.lock = nil
	}
}

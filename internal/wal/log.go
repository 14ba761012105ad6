package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/vfs"
)

const (
	// DefaultSegmentBytes is the default size of a segment.
	DefaultSegmentBytes = 64 << 20
	minSegmentBytes     = 16 << 10

	// Parts of at least largePart bytes are written without a copy.
	largePart = 32 << 10
	// bufferBytes is the size of the buffer that gathers small parts.
	bufferBytes = 1 << 20
	// maxBatchBytes ends a batch, so that recovery never needs much memory for one.
	maxBatchBytes = 8 << 20
	// maxPieces limits the pieces of one write (IOV_MAX).
	maxPieces = 1024
	// After a batch of up to fillBelow bytes in a new file, zeros are written for the next fillFactor batches.
	fillBelow  = 16 << 10
	fillFactor = 32
	zeroBytes  = 64 << 10
)

// Options are the options with which a log is opened.
type Options struct {
	FS  vfs.FS // default vfs.OS
	Dir string // made if it does not exist
	// SegmentBytes is the size of a segment file: default 64 MiB, at least 16 KiB, less than 4 GiB. Existing segments of
	// other sizes remain valid.
	SegmentBytes int64
	// Identity identifies the owner, in at most 1 KiB. Open fails with *IdentityError if the directory has the log of
	// another owner.
	Identity []byte
	// Newest is the newest format that is known here; 0: that of this program. Format is the one in which segments are
	// written at first; 0: the first one. See WriteFormat.
	Newest, Format int
	// Cover is the part of the log that a snapshot covers; nil: none.
	Cover *Cover
	// BeforeCells is called before the first cell of a log that had none and was opened without Cover.Cells. Its owner
	// makes durable that the log may have cells from now on. An error is that of Append. nil: it is not called.
	BeforeCells func() error
	// BeforeGrowth is called before each record that Grows. Its owner makes durable that the log may have several
	// instances from now on. An error is that of Append. nil: it is not called.
	BeforeGrowth func() error
	// BeforeSeal is called before each record that Seals. Its owner makes durable that the log may have a seal, which
	// earlier versions ignore.
	BeforeSeal func() error
}

// Log is the durable log of one member. Append, Sync, Replay, Compact and Close may be called by one goroutine at a
// time; ReadEntry, Size and Instances are safe for concurrent use.
//
// It has no goroutine, clock or randomness: its operations on files are a function of the calls.
type Log struct {
	home
	incarnation uint32        // counts Opens; seeds checksums
	newest      uint32        // version of segments that is known
	version     atomic.Uint32 // of segments that are begun
	zeros       []byte

	// mu guards the state that ReadEntry uses: index, cells, and parts of segments and openBatch, as noted there.
	mu    sync.Mutex
	index index
	cells bool // instances may have cells
	segments
	beforeCells  func() error // nil: nothing is to be done; so are the others
	beforeGrowth func() error
	beforeSeal   func() error
	openBatch

	// number is that of the last batch, durable that of the last one known to be durable. durable ≤ number.
	number, durable uint64
	marks           *markFile
	// relieving: the records being written free space, so they may use half of the reserve of the current segment;
	// starting: they are those of a start, and may use all of it.
	relieving, starting bool
	closed              bool
	damage              []*CorruptError // found by Open, which could continue without it
	err                 error           // the error that shut the log

	// Mutant is for tests: mark-before-sync.
	Mutant mutant.Name
}

// home is the directory of a log, or of bodies.
type home struct {
	fs           vfs.FS
	dir          string
	identity     []byte
	segmentBytes int64
	lock         io.Closer
	names        vfs.File // the directory, kept open so that a sync needs no new descriptor
}

// segments are a log's files. segs, next, free and maxFree are guarded by mu.
type segments struct {
	// segs are the live segments, numbered without gaps; the last is being written.
	segs []*segment
	// next is the segment after segs, prepared and empty; or nil.
	next *segment
	free []*segment // files to be reused
	// maxFree limits free: the footprint remains as before the last Compact.
	maxFree int
	first   uint64 // the oldest segment that is needed, as recorded in the log; ≥ segs[0].seq
	// carriedAt is the segment that was current when cells were last rewritten; 0: not since the start.
	carriedAt uint64
	// preparing is the next segment while another goroutine creates it.
	preparing *prepared
	// turning is the segment that the last mark in pieces, or on disk, names as the next one, if the disk was full
	// before that mark was durable; otherwise nil.
	turning *segment
}

// openBatch is the batch that is being built. pieces are its bytes, to be written at start of the current segment.
// The first piece begins with space for the batch's header. All but dirty and sealed is guarded by mu.
type openBatch struct {
	pieces [][]byte
	buf    []byte // of fixed capacity; it has the pieces of small parts
	start  int64
	end    int64 // start + the bytes in pieces
	count  uint32
	lent   bool // some piece is the caller's memory
	// dirty: bytes that a caller may wait for were written since the last sync.
	dirty  bool
	sealed bool // the last batch is a seal
}

type prepared struct {
	wait func() // returns when the rest is set
	seg  *segment
	err  error
}

// WriteFormat makes segments that are begun from now on have a format. The owner has made durable that the log may have
// it. It is safe for concurrent use.
func (l *Log) WriteFormat(f int) { l.version.Store(versionOf(f)) }

func (l *Log) current() *segment { return l.segs[len(l.segs)-1] }

// fail shuts the log permanently. It does not if the disk had no space: nothing is lost or in doubt, and the call can
// be repeated.
func (l *Log) fail(op string, err error) error {
	if full := spaceMissing(err); full != nil {
		return full
	}
	if l.err == nil {
		if failed, ok := err.(*FailedError); ok {
			l.err = failed
		} else {
			l.err = &FailedError{Op: op, Err: err}
		}
	}
	return l.err
}

// Append adds records at the end; they are durable after the next Sync. The caller may reuse the records when it
// returns. An error shuts the log, except a *FullError: then the disk had no space, some of the records may be in the
// log, and the caller must call Append with the same records again.
func (l *Log) Append(records []Record) error {
	if _, err := l.gatherRecords(records); err != nil {
		if l.err == nil && l.lent {
			l.unlend()
		}
		return err
	}
	if l.lent {
		return l.flush()
	}
	return nil
}

// AppendAtStart is Append of the few records that a start needs. If the disk has no space for another segment, it may
// use the reserve of a segment for that.
func (l *Log) AppendAtStart(records []Record) error {
	l.starting = true
	defer func() { l.starting = false }()
	return l.Append(records)
}

// gatherRecords is Append, except that the records' memory is used until the next flush. It returns the number of
// appended records.
func (l *Log) gatherRecords(records []Record) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range records {
		if records[i].Kind == KindBody {
			continue
		}
		if err := l.appendRecord(&records[i]); err != nil {
			return i, l.fail("append", err)
		}
	}
	return len(records), nil
}

// unlend copies bytes of the caller's that are not written yet.
func (l *Log) unlend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.pieces {
		l.pieces[i] = append([]byte(nil), p...)
	}
	l.buf, l.lent = make([]byte, 0, cap(l.buf)), false
}

// announce calls what is called before a record that Grows, or Seals.
func (l *Log) announce(r *Record) error {
	if r.Grows && l.beforeGrowth != nil {
		if err := l.beforeGrowth(); err != nil {
			return err
		}
	}
	if r.Seals && l.beforeSeal != nil {
		return l.beforeSeal()
	}
	return nil
}

func (l *Log) appendRecord(r *Record) error {
	if r.size() > maxRecordBytes {
		return &TooLargeError{Bytes: int64(r.size()), Limit: maxRecordBytes}
	}
	in := l.index.get(r.Instance)
	if r.Kind == KindEntry {
		if err := l.beginAt(in, r.Index); err != nil {
			return err
		}
		if r.Index <= in.floor || r.Index > in.next() {
			return &OrderError{Instance: r.Instance, Kind: r.Kind, Index: r.Index, First: in.floor + 1, Next: in.next()}
		}
	} else if r.Kind != KindState && r.Kind != KindBase && r.Kind != KindCell && r.Kind != KindDrop {
		return &OrderError{Instance: r.Instance, Kind: r.Kind, Index: r.Index}
	}
	if r.Kind == KindCell && !l.cells {
		if l.beforeCells != nil {
			if err := l.beforeCells(); err != nil {
				return err
			}
		}
		l.cells = true
	}
	if r.Grows || r.Seals {
		if err := l.announce(r); err != nil {
			return err
		}
	}
	h := recordHeader{instance: r.Instance, kind: r.Kind, index: r.Index}
	if r.Kind == KindState {
		h.index = 0
	}
	at, err := l.put(h, r.Parts)
	if err != nil {
		return err
	}
	switch r.Kind {
	case KindEntry:
		in.entry(r.Index, at)
	case KindState:
		in.state = at
		in.saved = append(append(in.saved[:0], r.Parts[0]...), r.Parts[1]...)
	case KindBase:
		in.startAt(r.Index, at)
	case KindCell:
		in.setCell(r.Index, cell{at, r.Parts})
	case KindDrop:
		in.dropCell(r.Index)
	}
	l.dirty, l.sealed = true, false
	return nil
}

// beginAt sets the first index of an instance that has written no entry or base.
func (l *Log) beginAt(in *instance, index uint64) error {
	if in.begun() || index <= 1 {
		return nil
	}
	at, err := l.put(recordHeader{kind: KindMark, flag: markFloor, instance: in.id, index: index - 1}, [2][]byte{})
	if err != nil {
		return err
	}
	in.raise(index-1, at)
	return nil
}

// put adds a record to the open batch. If necessary it writes the batch, and continues to another segment.
func (l *Log) put(h recordHeader, parts [2][]byte) (place, error) {
	n := len(parts[0]) + len(parts[1])
	copied := recordHeaderSize
	for _, p := range parts {
		if len(p) < largePart {
			copied += len(p)
		}
	}
	if len(l.buf)+copied+slack > cap(l.buf) || len(l.pieces)+4 > maxPieces || l.end-l.start > maxBatchBytes {
		if err := l.flushLocked(); err != nil {
			return place{}, err
		}
	}
	if err := l.makeSpace(int64(recordHeaderSize + n)); err != nil {
		return place{}, err
	}
	return l.putHere(h, parts), nil
}

// slack is the space of a batch in addition to its records: its header and padding, and the mark at a segment's
// start.
const slack = batchHeaderSize + recordHeaderSize + batchAlign

// makeSpace continues to another segment if the current one has no space for n bytes of records in
// the open batch.
func (l *Log) makeSpace(n int64) error {
	need := n + slack + nextMarkSize
	for l.turning != nil || l.end+need > l.current().capacity-l.reserved() {
		if err := l.rotate(need); err != nil {
			return err
		}
	}
	return nil
}

// reserved is the space of a segment that is reserved for marks, compaction and starts, for the case that the disk
// has none for another segment.
func (l *Log) reserved() int64 {
	switch {
	case l.starting:
		return 0
	case l.relieving:
		return l.headroom() / 2
	}
	return l.headroom()
}

// headroom is the space of every segment in addition to the records for which it was created.
func (l *Log) headroom() int64 { return min(64<<10, l.segmentBytes/16) }

// putHere adds a record to the open batch, which has space for it.
func (l *Log) putHere(h recordHeader, parts [2][]byte) place {
	seg := l.current()
	if len(l.pieces) == 0 {
		l.begin()
	}
	h.length = uint32(len(parts[0]) + len(parts[1]))
	at := place{seg: uint32(seg.seq), off: uint32(l.end), len: h.length}
	seed := seg.incarnations[len(seg.incarnations)-1].salt
	if len(parts[0]) < largePart && len(parts[1]) < largePart {
		b := l.reserve(recordHeaderSize + int(h.length))
		h.encode(b)
		n := copy(b[recordHeaderSize:], parts[0])
		copy(b[recordHeaderSize+n:], parts[1])
		binary.LittleEndian.PutUint32(b, crc32.Update(seed, castagnoli, b[4:]))
	} else {
		l.putLarge(h, parts, seed)
	}
	l.count++
	return at
}

// putLarge adds a record of which some parts are written without a copy.
func (l *Log) putLarge(h recordHeader, parts [2][]byte, seed uint32) {
	head := l.reserve(recordHeaderSize)
	h.encode(head)
	crc := crc32.Update(seed, castagnoli, head[4:])
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		crc = crc32.Update(crc, castagnoli, p)
		if len(p) < largePart {
			copy(l.reserve(len(p)), p)
		} else {
			l.pieces = append(l.pieces, p)
			l.end += int64(len(p))
			l.lent = true
		}
	}
	binary.LittleEndian.PutUint32(head, crc)
}

// begin starts a batch. The first batch of a segment records which segments are needed.
func (l *Log) begin() {
	l.buf = l.buf[:0]
	l.start = l.end
	l.reserve(batchHeaderSize)
	if l.start == segmentHeaderSize {
		l.putHere(recordHeader{kind: KindMark, flag: markFirst, index: l.first}, [2][]byte{})
	}
}

// reserve adds n bytes to the buffer and to the last piece, or a new one.
func (l *Log) reserve(n int) []byte {
	at := len(l.buf)
	l.buf = l.buf[:at+n]
	l.end += int64(n)
	if k := len(l.pieces); k > 0 {
		if p := l.pieces[k-1]; len(p) <= at && &l.buf[at-1] == &p[len(p)-1] {
			l.pieces[k-1] = l.buf[at-len(p) : at+n]
			return l.buf[at : at+n]
		}
	}
	l.pieces = append(l.pieces, l.buf[at:at+n])
	return l.buf[at : at+n]
}

func (l *Log) flush() error {
	if l.err != nil {
		return l.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.flushLocked(); err != nil {
		return l.fail("write", err)
	}
	return nil
}

// flushLocked writes the open batch.
func (l *Log) flushLocked() error {
	if len(l.pieces) == 0 {
		return nil
	}
	seg := l.current()
	h := batchHeader{seq: seg.seq, number: l.number + 1, durable: l.durable, incarnation: l.incarnation,
		offset: uint32(l.start), length: uint32(l.end - l.start - batchHeaderSize), count: l.count}
	unpad := l.mark()
	if pad := int(align(l.end) - l.end); pad > 0 {
		clear(l.reserve(pad))
	}
	h.encode(l.pieces[0], seg.incarnations[len(seg.incarnations)-1].salt)
	err := l.fillAhead(seg)
	if err == nil {
		err = gather(seg.file, l.pieces, l.start)
	}
	if err != nil {
		need := l.end - l.start
		l.back(unpad) // it may be written again, with more after it
		return noSpace(l.dir, &FailedError{Op: "write", Err: err}, need)
	}
	l.number++
	clear(l.pieces)
	l.pieces, l.buf = l.pieces[:0], l.buf[:0]
	l.start, l.count, l.lent = l.end, 0, false
	return nil
}

// batchMark is an end of the open batch, to return to.
type batchMark struct {
	pieces, last, buf int
	end               int64
}

func (l *Log) mark() batchMark {
	n := len(l.pieces)
	return batchMark{n, len(l.pieces[n-1]), len(l.buf), l.end}
}

// back removes what was added since the mark.
func (l *Log) back(m batchMark) {
	l.pieces, l.buf, l.end = l.pieces[:m.pieces], l.buf[:m.buf], m.end
	l.pieces[m.pieces-1] = l.pieces[m.pieces-1][:m.last]
}

// fillAhead writes zeros after a small batch at bytes never written, so that the next batches change no metadata. For
// larger batches it costs more than it saves.
func (l *Log) fillAhead(seg *segment) error {
	if l.end <= seg.filled {
		return nil
	}
	from, n := l.end, l.end-l.start
	seg.filled = l.end
	if n > fillBelow {
		return nil
	}
	if l.zeros == nil {
		l.zeros = make([]byte, zeroBytes)
	}
	to := min(from+max(fillFactor*n, zeroBytes), seg.capacity)
	for from < to {
		n := min(to-from, zeroBytes)
		if err := writeAt(seg.file, l.zeros[:n], from); err != nil {
			return err
		}
		from += n
	}
	seg.filled = to
	return nil
}

// prepare creates the next segment, concurrently with the calls that follow, once the current one is half full, so
// that no caller waits for it. It does not if the log already continues to that segment and waits for space: another
// file under its name would replace it.
func (l *Log) prepare(background Background) {
	cur := l.current()
	if l.next != nil || l.turning != nil || l.preparing != nil || l.end < cur.capacity/2 {
		return
	}
	p := &prepared{}
	l.preparing = p
	p.wait = background(func() { p.seg, p.err = l.createSegment(cur.seq+1, l.segmentBytes) })
}

// Sync makes everything appended durable. A failed sync shuts the log: every later call returns
// the same *FailedError.
func (l *Log) Sync() error {
	if l.err != nil {
		return l.err
	}
	if err := l.flush(); err != nil {
		return err
	}
	if !l.dirty {
		return nil
	}
	if l.Mutant == MutantMarkEarly {
		if err := l.synced(); err != nil {
			return l.fail("mark", err)
		}
	}
	if err := syncData(l.current().file); err != nil {
		return l.fail("sync", err)
	}
	if err := l.synced(); err != nil {
		return l.fail("mark", err)
	}
	return l.freeSegments()
}

// synced records that all written batches are durable.
func (l *Log) synced() error {
	l.durable, l.dirty = l.number, false
	return l.marks.put(mark{l.number, l.current().seq, l.start, l.incarnation})
}

// rotate makes the current segment durable and continues to the next, which has space for need bytes. The mark at the
// end records that there is a next one. If the disk is full, it can be called again.
func (l *Log) rotate(need int64) error {
	old := l.current()
	if l.turning == nil {
		if err := l.flushLocked(); err != nil {
			return err
		}
		next, err := l.nextSegment(old.seq+1, need)
		if err != nil {
			return err
		}
		l.putHere(recordHeader{kind: KindMark, flag: markNext, index: next.seq}, [2][]byte{})
		l.turning = next
	}
	if err := l.flushLocked(); err != nil {
		return err
	}
	if err := syncData(old.file); err != nil {
		return &FailedError{Op: "sync", Err: err}
	}
	if err := l.synced(); err != nil {
		return err
	}
	l.use(l.turning)
	l.turning = nil
	return nil
}

// use makes an empty segment the current one.
func (l *Log) use(s *segment) {
	s.incarnations = []incarnationSpan{{from: 0, salt: salt(l.identity, s.seq, l.incarnation)}}
	l.segs = append(l.segs, s)
	l.start, l.end = segmentHeaderSize, segmentHeaderSize
}

// nextSegment returns segment seq, empty and with space for need bytes.
func (l *Log) nextSegment(seq uint64, need int64) (*segment, error) {
	capacity := max(l.segmentBytes, align(segmentHeaderSize+need+l.headroom()))
	if capacity > maxSegmentBytes {
		return nil, &TooLargeError{Bytes: need, Limit: maxRecordBytes}
	}
	l.mu.Unlock()
	defer l.mu.Lock()
	if err := l.awaitPrepared(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	next := l.next
	l.next = nil
	l.mu.Unlock()
	if next != nil && next.capacity < capacity {
		if err := l.remove(next); err != nil {
			return nil, err
		}
		next = nil
	}
	if next != nil {
		return next, nil
	}
	return l.createSegment(seq, capacity)
}

func (l *Log) awaitPrepared() error {
	if l.preparing == nil {
		return nil
	}
	p := l.preparing
	p.wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.preparing = nil
	l.next = p.seg
	var full *FullError
	if errors.As(p.err, &full) {
		return nil // nothing was written, and there may be space now
	}
	return p.err
}

// seal writes a batch that records that everything before it is durable, and need not be durable itself, and syncs
// the mark with the same information; see the package's comment.
func (l *Log) seal() error {
	if l.err != nil {
		return l.err
	}
	if err := l.marks.sync(); err != nil {
		return l.fail("mark", err)
	}
	if l.sealed || l.dirty || l.durable < l.number {
		return nil
	}
	l.mu.Lock()
	_, err := l.put(recordHeader{kind: KindMark, flag: markSeal}, [2][]byte{})
	if err == nil {
		err = l.flushLocked()
	}
	l.mu.Unlock()
	if spaceMissing(err) != nil {
		return nil // it is not needed
	}
	if err != nil {
		return l.fail("write", err)
	}
	l.sealed = true
	return nil
}

// Size is the size of the log's segments on disk, in bytes. Files kept for reuse are not counted.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.segs {
		n += s.capacity
	}
	if l.next != nil {
		n += l.next.capacity
	}
	return n
}

// Damaged returns the damage that Open found and could continue without.
func (l *Log) Damaged() []*CorruptError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*CorruptError(nil), l.damage...)
}

// Spare is the size of files for later writes, in bytes: prepared, or kept for reuse.
func (l *Log) Spare() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, s := range l.free {
		n += s.capacity
	}
	if l.next != nil {
		n += l.next.capacity
	}
	return n
}

// Floor is the index up to which an instance's entries were dropped.
func (l *Log) Floor(instance uint32) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.index.all {
		if in.id == instance {
			return in.floor
		}
	}
	return 0
}

// Instances returns the ids of all instances that ever wrote to the log, ascending.
func (l *Log) Instances() []uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]uint32, len(l.index.all))
	for i, in := range l.index.all {
		ids[i] = in.id
	}
	return ids
}

// Close makes everything appended durable, seals the log and unlocks the directory. It returns the log's *FailedError
// if it had failed.
func (l *Log) Close() error {
	if l.err == ErrClosed {
		return nil
	}
	err := l.Sync()
	if err == nil {
		err = l.seal()
	}
	if err == nil {
		if serr := syncData(l.current().file); serr != nil {
			err = l.fail("sync", serr)
		}
	}
	if err == nil {
		if err = l.synced(); err == nil {
			err = l.marks.sync()
		}
		if err != nil {
			err = l.fail("mark", err)
		}
	}
	if perr := l.awaitPrepared(); err == nil {
		err = perr
	}
	l.closeFiles()
	l.err = ErrClosed
	return err
}

func (l *Log) closeFiles() {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append(append([]*segment(nil), l.segs...), l.free...)
	for _, s := range []*segment{l.next, l.turning} {
		if s != nil {
			all = append(all, s)
		}
	}
	for _, s := range all {
		s.removed = true
		if s.refs == 0 {
			s.file.Close()
		}
	}
	l.segs, l.free, l.next, l.turning, l.closed = nil, nil, nil, nil, true
	l.marks.close()
	if l.names != nil {
		l.names.Close()
		l.names = nil
	}
	if l.lock != nil {
		l.lock.Close()
		l.lock = nil
	}
}

// writeEach writes the pieces one after the other.
func writeEach(f vfs.File, pieces [][]byte, offset int64) error {
	for _, p := range pieces {
		if err := writeAt(f, p, offset); err != nil {
			return err
		}
		offset += int64(len(p))
	}
	return nil
}

package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/vfs"
)

// Open opens the log of a directory, or creates one. A torn tail is truncated; damage anywhere else is a
// *CorruptError. It fails with *IdentityError if the log is another member's, with *LockedError if it is open
// already.
func Open(o Options) (*Log, error) {
	if o.FS == nil {
		o.FS = vfs.OS
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	o.SegmentBytes = align(min(max(o.SegmentBytes, minSegmentBytes), maxSegmentBytes))
	if len(o.Identity) > maxIdentity {
		return nil, &TooLargeError{Bytes: int64(len(o.Identity)), Limit: maxIdentity}
	}
	l := &Log{home: home{fs: o.FS, dir: o.Dir, identity: append([]byte(nil), o.Identity...), segmentBytes: o.SegmentBytes}}
	l.newest = versionOf(cmp.Or(o.Newest, format.Newest()))
	l.WriteFormat(o.Format)
	l.buf = make([]byte, 0, min(bufferBytes, max(l.segmentBytes/4, 4*largePart)))
	if err := l.open(&o); err != nil {
		l.closeFiles()
		return nil, err
	}
	return l, nil
}

func (l *Log) open(o *Options) error {
	if err := durable.MakeDir(l.fs, l.dir, 0o755); err != nil {
		return err
	}
	lock, err := l.fs.Lock(filepath.Join(l.dir, lockName))
	if err != nil {
		return &LockedError{Dir: l.dir, Err: err}
	}
	l.lock = lock
	if l.names, err = l.fs.OpenDir(l.dir); err != nil {
		return &ReadError{"open", l.dir, err}
	}
	mark, damage, err := readMark(l.fs, l.dir, l.identity)
	if err != nil {
		return err
	}
	if l.marks = mark; damage != nil {
		l.damage = append(l.damage, damage)
	}
	l.cells, l.beforeCells = o.Cover != nil && o.Cover.Cells, o.BeforeCells
	l.beforeGrowth, l.beforeSeal = o.BeforeGrowth, o.BeforeSeal
	r := recovery{l: l, buffer: l.newReadBuffer(), cover: o.Cover}
	if err := r.run(); err != nil {
		return err
	}
	if err := l.remember(); err != nil {
		return err
	}
	if err := l.mend(); err != nil {
		return err
	}
	return l.beginIncarnation(max(r.incarnation, l.marks.last.incarnation)+1, r.cleanUp)
}

// beginIncarnation makes the recovered state durable (the process may have died without the machine), and then marks
// the new incarnation, so that later batches cannot be mistaken for the remains of an earlier incarnation.
func (l *Log) beginIncarnation(life uint32, cleanUp func() error) error {
	if len(l.segs) == 0 {
		s, err := l.createSegment(1, l.segmentBytes)
		if err != nil {
			return err
		}
		l.first = 1
		l.incarnation = life
		l.use(s)
	} else {
		if err := l.syncEnd(); err != nil {
			return &FailedError{Op: "sync", Err: err}
		}
		s := l.current()
		l.incarnation = life
		s.incarnations = append(s.incarnations, incarnationSpan{from: l.end, salt: salt(l.identity, s.seq, life)})
	}
	if err := l.marks.create(l.fs, l.dir, l.names); err != nil {
		return err
	}
	l.durable = l.number
	if err := cleanUp(); err != nil { // it may free the space that is needed now
		return err
	}
	l.mu.Lock()
	l.starting = true // a start needs no free space
	_, err := l.put(recordHeader{kind: KindMark, flag: markIncarnation, index: uint64(life)}, [2][]byte{})
	if err == nil {
		err = l.heal()
	}
	l.dirty, l.starting = true, false
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.Sync()
}

// syncEnd makes everything durable that was found. Only the last two segments may not be: one is synced before anything
// is written to the next one.
func (l *Log) syncEnd() error {
	for _, s := range l.segs[max(0, len(l.segs)-2):] {
		if err := l.rewriteEnd(s); err != nil {
			return err
		}
		if err := syncData(s.file); err != nil {
			return err
		}
	}
	return l.names.Sync()
}

// rewriteEnd writes again the batches of a segment that the mark does not cover.
func (l *Log) rewriteEnd(s *segment) error {
	if l.marks.last.seq > s.seq {
		return nil
	}
	from, to := max(l.marks.durable(s.seq), segmentHeaderSize), l.end
	if s != l.current() {
		buffer := l.newReadBuffer()
		seg := &segment{seq: s.seq, file: s.file, capacity: s.capacity}
		sc := scanner{buffer: &buffer, seg: seg, identity: l.identity}
		end, err := sc.run(from, 0, func(recordHeader, place) error { return nil })
		if err != nil {
			return err
		}
		to = end
	}
	return rewrite(s.file, from, to)
}

// recovery reads files into a log.
type recovery struct {
	l           *Log
	incarnation uint32 // the highest incarnation in a batch
	names       []string
	expect      uint64 // the number of the next batch; 0: not known
	buffer      readBuffer
	cover       *Cover
	gaps        gaps
	behind      bool // a gap precedes: the next batch has any number after expect
}

func (r *recovery) run() error {
	l := r.l
	segs, err := r.list()
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		if was := l.marks.last; was != (mark{}) {
			return &CorruptError{File: l.path(was.seq, liveSuffix), Offset: was.end, Detail: fmt.Sprintf(
				"no segment is there: %s says that the log was durable up to batch %d", l.marks.path, was.number)}
		}
		return nil
	}
	first, err := r.firstNeeded(segs)
	if err != nil {
		return err
	}
	l.first = first
	for len(segs) > 0 && segs[0].seq < first {
		segs[0].file.Close()
		segs = segs[1:]
	}
	l.segs = segs // so that they are closed after an error
	for _, s := range segs {
		if err := r.header(s); err != nil {
			return err
		}
	}
	if len(segs) == 0 {
		return &CorruptError{File: l.path(first, liveSuffix), Detail: "the segment is missing"}
	}
	return r.replay(segs)
}

// list opens all segments and collects the names of other files.
func (r *recovery) list() ([]*segment, error) {
	l := r.l
	names, err := l.fs.List(l.dir)
	if err != nil {
		return nil, &ReadError{"list", l.dir, err}
	}
	sort.Strings(names)
	r.names = names
	var segs []*segment
	for _, name := range names {
		seq, ok := parseName(name)
		if !ok {
			continue
		}
		f, err := l.fs.OpenReadWrite(filepath.Join(l.dir, name))
		if err != nil {
			for _, s := range segs {
				s.file.Close()
			}
			return nil, &ReadError{"open", name, err}
		}
		segs = append(segs, &segment{seq: seq, file: f})
	}
	return segs, nil
}

// cleanUp removes dropped and unfinished files, and keeps a few free ones.
func (r *recovery) cleanUp() error {
	l := r.l
	for _, name := range r.names {
		seq, ok := parseName(name)
		stale := ok && seq < l.first || strings.HasSuffix(name, tempSuffix)
		if hex, free := strings.CutSuffix(name, freeSuffix); free {
			stale = len(l.free) >= minFree || !r.keepFree(hex)
		}
		if !stale {
			continue
		}
		// It may be missing: it may have been created again under its name, and renamed.
		if err := l.fs.Remove(filepath.Join(l.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("wal: remove %s: %w", name, err)
		}
	}
	return nil
}

// keepFree adds a free file to the pool if it is a complete segment of this log that was dropped. Other files are
// removed.
func (r *recovery) keepFree(hex string) bool {
	l := r.l
	seq, ok := parseName(hex + liveSuffix)
	if !ok || seq >= l.first {
		return false
	}
	f, err := l.fs.OpenReadWrite(l.path(seq, freeSuffix))
	if err != nil {
		return false
	}
	b := make([]byte, segmentHeaderSize)
	n, err := readFull(f, b, 0)
	if err == nil {
		h, herr := decodeSegmentHeader(b[:n], l.newest)
		info, serr := f.Stat()
		ok = herr == nil && serr == nil && h.seq == seq && h.capacity == l.segmentBytes &&
			info.Size() == h.capacity && bytes.Equal(h.identity, l.identity)
	}
	if err != nil || !ok {
		f.Close()
		return false
	}
	l.free = append(l.free, &segment{seq: seq, file: f, capacity: l.segmentBytes, filled: l.segmentBytes})
	return true
}

// header checks a segment's first page and its length. If the page is damaged, the batches may still be good: their
// checksums depend on the log and the segment too.
func (r *recovery) header(s *segment) error {
	l := r.l
	name := l.path(s.seq, liveSuffix)
	b := make([]byte, segmentHeaderSize)
	n, err := readFull(s.file, b, 0)
	if err != nil {
		return &ReadError{"read", name, err}
	}
	h, err := decodeSegmentHeader(b[:n], l.newest)
	var version *VersionError
	if errors.As(err, &version) {
		version.File = name
		return version
	}
	info, serr := s.file.Stat()
	if serr != nil {
		return &ReadError{"stat", name, serr}
	}
	s.capacity = min(info.Size(), maxSegmentBytes)
	switch {
	case err != nil:
		s.flaw = &CorruptError{File: name, Offset: 0, Detail: err.Error()}
	case !bytes.Equal(h.identity, l.identity):
		return &IdentityError{Dir: l.dir, Have: h.identity, Want: l.identity}
	case h.seq != s.seq:
		s.flaw = &CorruptError{File: name, Offset: 16, Detail: fmt.Sprintf("it is segment %d by its header", h.seq)}
	case info.Size() != h.capacity || h.capacity > maxSegmentBytes:
		s.short = true
		s.flaw = &CorruptError{File: name, Offset: info.Size(),
			Detail: fmt.Sprintf("the file has %d bytes, its header says %d", info.Size(), h.capacity)}
	}
	return nil
}

// firstNeeded finds the mark with the first segment that belongs to the log. Every segment begins with such a mark,
// so the newest segment has the latest one.
func (r *recovery) firstNeeded(segs []*segment) (uint64, error) {
	for i := len(segs) - 1; i >= 0; i-- {
		if err := r.header(segs[i]); err != nil {
			closeAll(segs)
			return 0, err
		}
		first := uint64(0)
		sc := scanner{buffer: &r.buffer, seg: segs[i], identity: r.l.identity}
		_, err := sc.run(segmentHeaderSize, 0, func(h recordHeader, _ place) error {
			if h.kind == KindMark && h.flag == markFirst {
				first = max(first, h.index)
			}
			return nil
		})
		if err != nil {
			closeAll(segs)
			return 0, err
		}
		if first > 0 {
			return first, nil
		}
	}
	return segs[0].seq, nil
}

func closeAll(segs []*segment) {
	for _, s := range segs {
		s.file.Close()
	}
}

// replay reads the segments in order and finds the log's end.
func (r *recovery) replay(segs []*segment) error {
	l := r.l
	if l.first == 1 {
		r.expect = 1
	}
	for i, s := range segs {
		want := l.first
		if i > 0 {
			want = segs[i-1].seq + 1
		}
		if s.seq != want {
			if err := r.missing(segs, i, want); err != nil {
				return err
			}
		}
		switch end, goesOn, err := r.segment(segs, i); {
		case err != nil:
			return err
		case !goesOn:
			return r.end(segs, i, end)
		case i == len(segs)-1:
			return &CorruptError{File: l.path(s.seq+1, liveSuffix), Detail: "the segment is missing: the one before it is full"}
		}
	}
	return nil
}

// segment reads one segment. It returns where the last good batch ends, and whether the log continues in the next
// segment; which it also does if the rest of this one is damaged.
func (r *recovery) segment(segs []*segment, i int) (end int64, goesOn bool, err error) {
	s := segs[i]
	from := int64(segmentHeaderSize)
	if r.behind {
		if from, err = r.resume(s, from); err != nil || from < 0 {
			if err == nil && i == len(segs)-1 {
				err = r.gaps.first
			}
			return 0, true, err
		}
	}
	s.incarnations = nil
	for {
		end, goesOn, err := r.batches(s, from)
		if err != nil || goesOn && !s.short {
			return end, goesOn, err
		}
		why, err := r.flaw(segs, i, end)
		if why == nil || err != nil {
			return end, false, err
		}
		if from, err = r.pass(segs, i, end, why); from < 0 || err != nil {
			return end, true, err
		}
	}
}

// batches reads good batches from an offset on.
func (r *recovery) batches(s *segment, from int64) (end int64, goesOn bool, err error) {
	expect := r.expect
	if r.behind {
		expect = 0
	}
	sc := scanner{buffer: &r.buffer, seg: s, identity: r.l.identity, incarnation: r.incarnation}
	end, err = sc.run(from, expect, func(h recordHeader, at place) error {
		goesOn = h.kind == KindMark && h.flag == markNext
		return r.record(s, h, at)
	})
	r.incarnation = sc.incarnation
	if sc.next > 0 {
		r.expect, r.behind = sc.next, false
	}
	return end, goesOn, err
}

// end makes offset in segs[i] the log's end.
func (r *recovery) end(segs []*segment, i int, offset int64) error {
	l, s := r.l, segs[i]
	l.segs = l.segs[:len(l.segs)-(len(segs)-i-1)]
	if i+1 < len(segs) {
		l.next = segs[i+1]
		l.next.filled = segmentHeaderSize
	}
	l.number = r.expect - 1
	l.start, l.end = offset, offset
	s.filled = offset
	return r.complete()
}

// record adds a record of the log to the index.
func (r *recovery) record(s *segment, h recordHeader, at place) error {
	l := r.l
	wrong := func(format string, args ...any) error {
		return &CorruptError{File: l.path(s.seq, liveSuffix), Offset: int64(at.off), Detail: fmt.Sprintf(format, args...)}
	}
	r.passed(at)
	switch {
	case h.kind == KindMark && h.flag == markGone:
		r.gone(h.instance)
		return nil
	case h.kind == KindMark && h.flag != markFloor && h.flag != markCells:
		return nil
	}
	in := r.seen(h.instance)
	if h.kind == KindCell || h.kind == KindDrop || h.kind == KindMark && h.flag == markCells {
		return r.cell(s, in, h, at)
	}
	carried := h.kind == KindBase && h.flag == flagCarried || h.kind == KindMark
	switch {
	case h.kind == KindState && h.index == 0:
		in.state = at
		r.found(in, lostState)
	case h.kind == KindEntry:
		if err := r.foundEntry(in, h.index); err != nil {
			return err
		}
		r.begin(in, h.index)
		if h.index <= in.floor || h.index > in.next() {
			return wrong("entry %d of instance %d where %d to %d can be", h.index, h.instance, in.floor+1, in.next())
		}
		in.entry(h.index, at)
	case h.kind == KindBase && !carried:
		in.startAt(h.index, at)
		r.found(in, lostEntries)
	case carried:
		if h.kind == KindBase {
			in.base, in.baseIndex = at, h.index
		}
		in.raise(h.index, at)
	default:
		return wrong("a record of kind %d and index %d", h.kind, h.index)
	}
	return nil
}

// begin lets an instance's entries begin at index although the ones before it are missing: they may have been in
// segments that were removed. Then a later mark records their compaction, or later entries replace these.
func (r *recovery) begin(in *instance, index uint64) {
	hole := in.entries.n == 0 && index > in.floor+1
	replaced := in.floor > in.marked && index <= in.floor && index > in.marked
	if hole || replaced {
		in.entries.truncate(0)
		in.floor = index - 1
	}
}

// scanner reads the batches of one segment in order, until there is none.
type scanner struct {
	buffer      *readBuffer
	seg         *segment
	identity    []byte
	incarnation uint32 // of the last batch
	next        uint64 // the number of the batch after the last; 0: there was none
}

// run calls visit for all records of good batches, beginning at an offset with batch number
// expect (0: any), and returns where the first batch that is not good would be. A batch counts
// whole or not at all.
func (s *scanner) run(offset int64, expect uint64, visit func(recordHeader, place) error) (int64, error) {
	for {
		h, body, err := s.batch(offset, expect)
		if err != nil {
			return 0, err
		}
		if h.number == 0 {
			return offset, nil
		}
		seed := salt(s.identity, h.seq, h.incarnation)
		if h.incarnation != s.incarnation || s.seg.incarnations == nil {
			s.seg.incarnations = append(s.seg.incarnations, incarnationSpan{from: offset, salt: seed})
			s.incarnation = h.incarnation
		}
		at := uint32(offset) + batchHeaderSize
		for len(body) > 0 {
			rh := decodeRecordHeader(body)
			if err := visit(rh, place{seg: uint32(h.seq), off: at, len: rh.length}); err != nil {
				return 0, err
			}
			at += recordHeaderSize + rh.length
			body = body[recordHeaderSize+rh.length:]
		}
		expect = h.number + 1
		s.next = expect
		offset = h.end()
	}
}

// batch returns the batch at an offset, all of its records checked; number 0 if there is no
// good one. An error is one of reading.
func (s *scanner) batch(offset int64, expect uint64) (h batchHeader, body []byte, err error) {
	b, err := s.buffer.bytes(s.seg.file, offset, batchHeaderSize)
	if err != nil {
		return h, nil, &ReadError{"read", segmentName(s.seg.seq, liveSuffix), err}
	}
	h, ok := decodeBatchHeader(b, s.identity, s.seg.seq, offset)
	if !ok || expect > 0 && h.number != expect || h.incarnation < s.incarnation || h.end() > s.seg.capacity {
		return batchHeader{}, nil, nil
	}
	b, err = s.buffer.bytes(s.seg.file, offset, batchHeaderSize+int(h.length))
	if err != nil {
		return h, nil, &ReadError{"read", segmentName(s.seg.seq, liveSuffix), err}
	}
	if len(b) < batchHeaderSize+int(h.length) ||
		!goodRecords(b[batchHeaderSize:], h.count, salt(s.identity, h.seq, h.incarnation)) {
		return batchHeader{}, nil, nil
	}
	return h, b[batchHeaderSize:], nil
}

// goodRecords reports whether b is exactly count good records.
func goodRecords(b []byte, count uint32, salt uint32) bool {
	for ; count > 0; count-- {
		_, _, rest, err := decodeRecord(b, salt)
		if err != nil {
			return false
		}
		b = rest
	}
	return len(b) == 0
}

// readBuffer reads files in large steps.
type readBuffer struct {
	file vfs.File
	buf  []byte
	at   int64
	step int // bytes to read at once
}

// readBytes is the size of reads of files of the usual size.
const readBytes = 1 << 20

func (l *Log) newReadBuffer() readBuffer {
	return readBuffer{step: int(min(readBytes, l.segmentBytes))}
}

// bytes returns n bytes from an offset on, or fewer at the end of the file. They are valid until the next call.
func (w *readBuffer) bytes(f vfs.File, offset int64, n int) ([]byte, error) {
	if w.file == f && offset >= w.at && offset+int64(n) <= w.at+int64(len(w.buf)) {
		i := int(offset - w.at)
		return w.buf[i : i+n], nil
	}
	if w.file != f {
		vfs.NoReadAhead(f)
	}
	// What was never written is not read ahead: it would only fill the machine's memory.
	size := max(n, int(min(int64(w.step), vfs.NextHole(f, offset)-offset)))
	if cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	w.buf = w.buf[:size]
	got, err := readFull(f, w.buf, offset)
	if err != nil {
		w.file = nil
		return nil, err
	}
	w.file, w.at, w.buf = f, offset, w.buf[:got]
	return w.buf[:min(n, got)], nil
}

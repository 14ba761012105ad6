package wal

import "sort"

// Damage is a place of a log whose bytes are not those that were written. When a log is opened a batch counts whole
// or not at all. So everything in a damaged batch is in danger, although parts of it may still be readable.
type Damage struct {
	Where *CorruptError
	Lost  []Lost // the records there that are needed; empty: none are
}

// Lost are the records of one instance that are in danger.
type Lost struct {
	Instance uint32
	State    bool   // its last state: see Rewrite
	Last     uint64 // the last of its entries; 0: none
	Cells    bool   // perhaps cells: see Rewrite
}

// Scrubber reads a log in order, to find damage before the damaged records are needed. It is safe for concurrent use
// with all calls of the Log. One goroutine at a time may use it.
type Scrubber struct {
	l      *Log
	buffer readBuffer
	seq    uint64 // the segment, 0 at the beginning of a round
	offset int64  // the next batch in it
}

// scrubStep is about the number of bytes that Next reads at once.
const scrubStep = 256 << 10

// NewScrubber returns a Scrubber that begins with the oldest segment.
func (l *Log) NewScrubber() *Scrubber {
	return &Scrubber{l: l, buffer: readBuffer{step: scrubStep}}
}

// Next reads some batches and returns their size in bytes; 0: the round is over, and the next call starts another
// one. damage is nil if they are good. err is a *ReadError: then this round skips the rest of the segment.
func (s *Scrubber) Next() (read int64, damage *Damage, err error) {
	seg, end := s.segment()
	if seg == nil {
		s.seq, s.offset = 0, 0
		return 0, nil, nil
	}
	defer s.release(seg)
	s.buffer.file = nil // the file has grown since
	from := s.offset
	for s.offset < end && s.offset-from < scrubStep && damage == nil {
		if damage, err = s.batch(seg, end); err != nil {
			read = max(s.offset-from, 1)
			s.seq, s.offset = seg.seq+1, segmentHeaderSize
			return read, nil, err
		}
	}
	read = max(s.offset-from, 1)
	switch {
	case s.offset < end:
	case damage != nil || seg != s.l.last():
		s.seq, s.offset = seg.seq+1, segmentHeaderSize
	default:
		s.seq, s.offset = 0, 0
		return 0, nil, nil
	}
	return read, damage, nil
}

// last is the segment that is being written; nil if the log is closed.
func (l *Log) last() *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segs) == 0 {
		return nil
	}
	return l.current()
}

// segment finds the segment to be read and pins it; end is the end of its written bytes.
func (s *Scrubber) segment() (seg *segment, end int64) {
	l := s.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.segs) == 0 {
		return nil, 0
	}
	if s.seq < l.segs[0].seq {
		s.seq, s.offset = l.segs[0].seq, segmentHeaderSize
	}
	i := int(s.seq - l.segs[0].seq)
	if i >= len(l.segs) {
		return nil, 0
	}
	seg, end = l.segs[i], l.segs[i].capacity
	if seg == l.current() {
		end = l.start
	}
	seg.refs++
	return seg, end
}

func (s *Scrubber) release(seg *segment) {
	l := s.l
	l.mu.Lock()
	seg.refs--
	gone := seg.refs == 0 && seg.removed
	l.mu.Unlock()
	if gone {
		seg.file.Close()
	}
}

// batch checks the next batch. It returns damage if there is no good one.
func (s *Scrubber) batch(seg *segment, end int64) (*Damage, error) {
	sc := scanner{buffer: &s.buffer, seg: &segment{seq: seg.seq, file: seg.file, capacity: end}, identity: s.l.identity}
	h, body, err := sc.batch(s.offset, 0)
	if err != nil {
		return nil, err
	}
	if h.number == 0 {
		return s.damage(seg, end)
	}
	s.offset = h.end()
	for len(body) > 0 {
		r := decodeRecordHeader(body)
		if r.kind == KindMark && r.flag == markNext {
			s.offset = end // the segment has no more
		}
		body = body[recordHeaderSize+r.length:]
	}
	return nil, nil
}

// damage describes the bytes from offset up to the next good batch, and continues there.
func (s *Scrubber) damage(seg *segment, end int64) (*Damage, error) {
	from := s.offset
	to, err := s.after(seg, end)
	if err != nil {
		return nil, err
	}
	s.offset = to
	where := &CorruptError{File: s.l.path(seg.seq, liveSuffix), Offset: from, Detail: "no good batch is here"}
	return &Damage{Where: where, Lost: s.l.within(seg, from, to)}, nil
}

// after finds the next good batch of a segment after the offset.
func (s *Scrubber) after(seg *segment, end int64) (int64, error) {
	r := recovery{l: s.l, buffer: readBuffer{step: scrubStep}}
	part := &segment{seq: seg.seq, file: seg.file, capacity: end}
	at := s.offset + 1
	for {
		found, err := r.search(part, at, func(*batchHeader) bool { return true })
		if err != nil {
			return 0, err
		}
		if found < 0 {
			return end, nil
		}
		sc := scanner{buffer: &r.buffer, seg: part, identity: s.l.identity}
		if h, _, err := sc.batch(found, 0); err != nil || h.number > 0 {
			return found, err
		}
		at = found + 1
	}
}

// within lists the records in a part of a segment that are needed.
func (l *Log) within(seg *segment, from, to int64) (all []Lost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := func(at place) bool {
		return at.seg == uint32(seg.seq) && int64(at.off) >= from && int64(at.off) < to
	}
	for _, inst := range l.index.all {
		lost := Lost{Instance: inst.id, State: in(inst.state)}
		// Any cell may have been there; those that still are there are known.
		at := place{seg: uint32(seg.seq), off: uint32(from)}
		lost.Cells = (l.cells || inst.cells != nil) && !at.before(inst.cellsFrom)
		n := sort.Search(inst.entries.n, func(i int) bool {
			at := inst.entries.at(i)
			return at.seg > uint32(seg.seq) || at.seg == uint32(seg.seq) && int64(at.off) >= to
		})
		if n > 0 && in(*inst.entries.at(n - 1)) {
			lost.Last = inst.floor + uint64(n)
		}
		if lost.State || lost.Last > 0 || lost.Cells {
			all = append(all, lost)
		}
	}
	return all
}

// remember reads the last states, and the cells.
func (l *Log) remember() error {
	w := l.newReadBuffer()
	for _, in := range l.index.all {
		if in.state.seg == 0 || uint64(in.state.seg) < l.segs[0].seq {
			continue
		}
		data, err := l.readPlace(&w, in.state, recordHeader{kind: KindState, instance: in.id})
		if err != nil {
			return err
		}
		in.saved = append([]byte(nil), data...)
	}
	return l.rememberCells(&w)
}

// Rewrite writes an instance's last state and its cells again, from memory, because the place of some of them is
// damaged.
func (l *Log) Rewrite(instance uint32) error {
	if l.err != nil {
		return l.err
	}
	l.mu.Lock()
	in := l.index.find(instance)
	l.mu.Unlock()
	if in == nil {
		return nil
	}
	if in.state.seg != 0 {
		state := Record{Instance: instance, Kind: KindState, Parts: [2][]byte{append([]byte(nil), in.saved...)}}
		if _, err := l.gatherRecords([]Record{state}); err != nil {
			return err
		}
	}
	return l.rewriteCells(in)
}

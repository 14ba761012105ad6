package wal

import "fmt"

// ReadEntry returns the bytes of an entry, its parts one after the other, checksum verified. The slice belongs to the
// caller. It is safe for concurrent use with all other calls. It returns *CompactedError, *NotFoundError, or
// *CorruptError.
func (l *Log) ReadEntry(instance uint32, index uint64) ([]byte, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, ErrClosed
	}
	in := l.index.find(instance)
	switch {
	case in == nil || index >= in.next() || index == 0:
		l.mu.Unlock()
		return nil, &NotFoundError{Instance: instance, Index: index}
	case index <= in.floor:
		l.mu.Unlock()
		return nil, &CompactedError{Instance: instance, Index: index, Floor: in.floor}
	}
	at := *in.entries.at(int(index - in.floor - 1))
	seg := l.segment(at)
	b := make([]byte, recordHeaderSize+int(at.len))
	if l.unwritten(seg, at, b) {
		l.mu.Unlock()
		return b[recordHeaderSize:], nil
	}
	seg.refs++
	l.mu.Unlock()

	_, err := readFull(seg.file, b, int64(at.off))

	l.mu.Lock()
	seed := seg.saltAt(int64(at.off))
	seg.refs--
	last := seg.refs == 0 && seg.removed
	l.mu.Unlock()
	if last {
		seg.file.Close()
	}
	if err != nil {
		return nil, &ReadError{"read", l.path(seg.seq, liveSuffix), err}
	}
	return l.checked(seg, at, seed, b, recordHeader{kind: KindEntry, instance: instance, index: index})
}

// segment returns the segment of a place.
func (l *Log) segment(at place) *segment {
	return l.segs[at.seg-uint32(l.segs[0].seq)]
}

// unwritten fills b with the bytes of a record if they are still in the open batch.
func (l *Log) unwritten(seg *segment, at place, b []byte) bool {
	if len(l.pieces) == 0 || seg != l.current() || int64(at.off) < l.start {
		return false
	}
	skip := int(int64(at.off) - l.start)
	for _, p := range l.pieces {
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		n := copy(b, p[skip:])
		b, skip = b[n:], 0
		if len(b) == 0 {
			break
		}
	}
	return true
}

// checked returns the data of the record in b if it is the wanted one.
func (l *Log) checked(seg *segment, at place, seed uint32, b []byte, want recordHeader) ([]byte, error) {
	h, data, rest, err := decodeRecord(b, seed)
	if err == nil && (h.kind != want.kind || h.instance != want.instance || h.index != want.index || len(rest) > 0) {
		err = fmt.Errorf("%v %d of instance %d where %v %d of instance %d was written",
			h.kind, h.index, h.instance, want.kind, want.index, want.instance)
	}
	if err != nil {
		return nil, &CorruptError{File: l.path(seg.seq, liveSuffix), Offset: int64(at.off), Detail: err.Error()}
	}
	return data, nil
}

// Replay calls f for the live records of an instance: the last state, the last base, the entries in ascending order,
// and the cells in ascending order, each if there is one. data is valid only during the call, except that of a cell,
// which stays valid and which f must not modify. An error of f ends it and is returned.
func (l *Log) Replay(instance uint32, f func(kind Kind, index uint64, data []byte) error) error {
	if err := l.flush(); err != nil {
		return err
	}
	l.mu.Lock()
	in := l.index.find(instance)
	l.mu.Unlock()
	if in == nil {
		return nil
	}
	w := l.newReadBuffer()
	read := func(at place, want recordHeader) error {
		data, err := l.readPlace(&w, at, want)
		if err != nil {
			return err
		}
		return f(want.kind, want.index, data)
	}
	if in.state.seg != 0 {
		if err := read(in.state, recordHeader{kind: KindState, instance: instance}); err != nil {
			return err
		}
	}
	if in.base.seg != 0 {
		if err := read(in.base, recordHeader{kind: KindBase, instance: instance, index: in.baseIndex}); err != nil {
			return err
		}
	}
	for i := 0; i < in.entries.n; i++ {
		want := recordHeader{kind: KindEntry, instance: instance, index: in.floor + 1 + uint64(i)}
		if err := read(*in.entries.at(i), want); err != nil {
			return err
		}
	}
	for _, number := range in.numbers() {
		if err := f(KindCell, number, in.cells[number].bytes()); err != nil {
			return err
		}
	}
	return nil
}

// readPlace reads a record that was written to its file.
func (l *Log) readPlace(w *readBuffer, at place, want recordHeader) ([]byte, error) {
	seg := l.segment(at)
	b, err := w.bytes(seg.file, int64(at.off), recordHeaderSize+int(at.len))
	if err != nil {
		return nil, &ReadError{"read", l.path(seg.seq, liveSuffix), err}
	}
	return l.checked(seg, at, seg.saltAt(int64(at.off)), b, want)
}

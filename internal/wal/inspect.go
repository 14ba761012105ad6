package wal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/vfs"
)

// SegmentInfo describes a segment for Inspect.
type SegmentInfo struct {
	File     string
	Sequence uint64
	Version  uint32 // of the file, by its header
	Bytes    int64  // of the file
	Capacity int64  // of the file, by its header
	Identity []byte
	Err      error // the damage of the header; then the records are not read
}

// RecordInfo describes a record for Inspect or, with Kind 0, a place without a good batch.
type RecordInfo struct {
	Sequence    uint64 // of the segment
	Offset      int64  // in the segment
	Batch       uint64
	Incarnation uint32 // the incarnation that wrote it
	Kind        Kind
	Mark        string // the contents of a mark, or that the record is a copy
	Instance    uint32
	Index       uint64
	Length      int // bytes without the header
	// Data are the record's bytes, valid during the call. nil with Err.
	Data []byte
	Err  error // the damage of the batch at Offset
}

// String is a line about the record.
func (r RecordInfo) String() string {
	at := fmt.Sprintf("%016x:%08x", r.Sequence, r.Offset)
	if r.Err != nil {
		return fmt.Sprintf("%s %v", at, r.Err)
	}
	what := r.Kind.String()
	if r.Mark != "" {
		what += "(" + r.Mark + ")"
	}
	return fmt.Sprintf("%s batch %d life %d %s instance %d index %d length %d", at, r.Batch, r.Incarnation, what,
		r.Instance, r.Index, r.Length)
}

// Inspect reads the segments of a directory, oldest first, of any member, and changes nothing. After damage it
// continues with the next good batch of the segment. Each call-back ends the walk by an error, which is returned. The
// log may be open; then the end may look torn.
func Inspect(fs vfs.FS, dir string, segment func(SegmentInfo) error, record func(RecordInfo) error) error {
	return inspect(fs, dir, inspector{segment: segment, record: record})
}

// Records reads the good records of a directory like Inspect, but after damage it continues with the next segment. So
// it takes no longer than reading the log.
func Records(fs vfs.FS, dir string, record func(RecordInfo) error) error {
	return inspect(fs, dir, inspector{segment: func(SegmentInfo) error { return nil }, record: record, goodOnly: true})
}

func inspect(fs vfs.FS, dir string, in inspector) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	sort.Strings(names)
	for _, name := range names {
		if _, ok := parseName(name); !ok {
			continue
		}
		if err := in.inspectFile(fs, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (in inspector) inspectFile(fs vfs.FS, name string) error {
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info := SegmentInfo{File: name}
	if st, err := f.Stat(); err != nil {
		return err
	} else {
		info.Bytes = st.Size()
	}
	w := readBuffer{step: readBytes}
	b, err := w.bytes(f, 0, segmentHeaderSize)
	if err != nil {
		return err
	}
	h, err := decodeSegmentHeader(b, versionOf(format.Newest()))
	info.Sequence, info.Capacity, info.Identity, info.Err = h.seq, h.capacity, h.identity, err
	info.Version = h.version
	if err := in.segment(info); err != nil || info.Err != nil {
		return err
	}
	in.file, in.header, in.end, in.buffer = f, h, min(info.Bytes, h.capacity), &w
	return in.run()
}

// inspector reads one segment.
type inspector struct {
	segment  func(SegmentInfo) error
	goodOnly bool
	file     vfs.File
	header   segmentHeader
	end      int64
	buffer   *readBuffer
	record   func(RecordInfo) error
	number   uint64 // of the last good batch
}

func (in *inspector) run() error {
	offset := int64(segmentHeaderSize)
	for offset < in.end {
		seg := &segment{seq: in.header.seq, file: in.file, capacity: in.end}
		s := scanner{buffer: in.buffer, seg: seg, identity: in.header.identity}
		h, body, err := s.batch(offset, 0)
		if err != nil {
			return err
		}
		if h.number > in.number {
			if err := in.batch(h, body); err != nil {
				return err
			}
			in.number = h.number
			offset = h.end()
			continue
		}
		if in.goodOnly {
			return nil
		}
		next, err := in.after(offset)
		if err != nil {
			return err
		}
		bad := RecordInfo{Sequence: in.header.seq, Offset: offset, Err: errNoBatch}
		if next < in.end {
			bad.Err = fmt.Errorf("no good batch: the next one that may be is at %08x", next)
		}
		if err := in.record(bad); err != nil {
			return err
		}
		offset = next
	}
	return nil
}

var errNoBatch = errors.New("no batch from here on")

func (in *inspector) batch(h batchHeader, body []byte) error {
	at := int64(h.offset) + batchHeaderSize
	for len(body) > 0 {
		r := decodeRecordHeader(body)
		end := recordHeaderSize + int(r.length)
		info := RecordInfo{Sequence: h.seq, Offset: at, Batch: h.number, Incarnation: h.incarnation, Kind: r.kind,
			Mark:     markText(r),
			Instance: r.instance, Index: r.index, Length: int(r.length), Data: body[recordHeaderSize:end]}
		if err := in.record(info); err != nil {
			return err
		}
		at += int64(end)
		body = body[end:]
	}
	return nil
}

func markText(r recordHeader) string {
	if r.kind != KindMark {
		if r.flag == flagCarried {
			return "carried"
		}
		return ""
	}
	switch r.flag {
	case markIncarnation:
		return "life"
	case markSeal:
		return "seal"
	case markNext:
		return "next"
	case markFirst:
		return "first"
	case markFloor:
		return "floor"
	case markCells:
		return "cells"
	case markGone:
		return "gone"
	}
	return fmt.Sprint(r.flag)
}

// after finds the next header behind an offset that belongs its place and to a batch later than the last good one;
// the segment's end if there is none.
func (in *inspector) after(offset int64) (int64, error) {
	for at := offset + batchAlign; at < in.end; at += batchAlign {
		b, err := in.buffer.bytes(in.file, at, int(min(batchHeaderSize, in.end-at)))
		if err != nil {
			return 0, err
		}
		if h, ok := decodeBatchHeader(b, in.header.identity, in.header.seq, at); ok && h.number > in.number {
			return at, nil
		}
	}
	return in.end, nil
}

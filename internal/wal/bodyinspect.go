package wal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"

	"github.com/braidlog/braid/internal/vfs"
)

// BodyInfo describes a record for InspectBodies or, with Number 0, a place that closes a file, seals it, or has no
// record.
type BodyInfo struct {
	File   string
	Offset int64
	Kind   string // body, seal, end; empty if there is none
	Body   Body   // without bytes; a later record may replace it
	Number uint64 // counts the bodies appended; copies made by compaction have the same
	Length int    // bytes, in the stored form
	Err    error  // the damage
}

// String is a line about the record.
func (i BodyInfo) String() string {
	at := fmt.Sprintf("%s:%08x", i.File, i.Offset)
	if i.Kind != "body" {
		if i.Err != nil {
			return at + " " + i.Err.Error()
		}
		return at + " " + i.Kind
	}
	state := "ok"
	if i.Err != nil {
		state = "corrupt: " + i.Err.Error()
	}
	return fmt.Sprintf("%s number %d instance %d index %d term %d form %d k %d length %d of %d %s", at, i.Number,
		i.Body.Instance,
		i.Body.Index, i.Body.Term, i.Body.Form, i.Body.K, i.Length, i.Body.Size, state)
}

var errNoBody = errors.New("no body from here on")

// InspectBodies reads all files of bodies of a directory, oldest first, of any member, and changes nothing. Each
// call-back ends the walk by an error, which is returned. The store may be open; then concurrent writes may look
// torn.
func InspectBodies(fs vfs.FS, dir string, file func(SegmentInfo) error, body func(BodyInfo) error) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	sort.Strings(names)
	for _, name := range names {
		seq, ok := parseBodyName(name, bodySuffix)
		if !ok {
			continue
		}
		if err := inspectBodies(fs, filepath.Join(dir, name), seq, file, body); err != nil {
			return err
		}
	}
	return nil
}

func inspectBodies(fs vfs.FS, name string, seq uint64, file func(SegmentInfo) error, body func(BodyInfo) error) error {
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	w := readBuffer{step: readBytes}
	page, err := w.bytes(f, 0, segmentHeaderSize)
	if err != nil {
		return err
	}
	h, err := decodePage(page, bodyFileMagic, firstVersion)
	if err := file(SegmentInfo{File: name, Sequence: seq, Bytes: st.Size(), Capacity: h.capacity, Identity: h.identity,
		Err: err}); err != nil {
		return err
	}
	if err != nil {
		return nil
	}
	in := &bodyFile{seq: seq, file: f, capacity: min(st.Size(), maxSegmentBytes), salt: salt(h.identity, seq, 0)}
	s := bodyScanner{buffer: &readBuffer{step: segmentHeaderSize}, ahead: &w, file: in, salt: in.salt,
		capacity: in.capacity}
	end, closed, err := s.run(func(item bodyItem) error {
		info, err := inspectItem(in, item)
		if err != nil {
			return err
		}
		info.File = name
		return body(info)
	})
	if err != nil || closed {
		return err
	}
	return body(BodyInfo{File: name, Offset: end, Err: errNoBody})
}

func inspectItem(f *bodyFile, item bodyItem) (BodyInfo, error) {
	info := BodyInfo{Offset: item.at}
	if item.flaw != "" {
		info.Err = errors.New(item.flaw)
	}
	if item.lost {
		return info, nil
	}
	h := item.head
	switch h.kind {
	case bodySeal:
		info.Kind = "seal"
	case bodyEnd:
		info.Kind = "end"
	default:
		info.Kind, info.Body, info.Number, info.Length = "body", h.meta, h.number, int(h.length)
	}
	data := make([]byte, h.length)
	if _, err := readFull(f.file, data, h.dataAt()); err != nil {
		return info, err
	}
	if crc := checksum(data); info.Kind == "body" && crc != h.crc {
		info.Err = fmt.Errorf("the checksum of its bytes is %08x, want %08x", crc, h.crc)
	}
	return info, nil
}

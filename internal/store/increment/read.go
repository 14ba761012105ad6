package increment

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// record is a part of a file. Its bytes are valid until the next one is read.
type record struct {
	kind       byte
	key, value []byte
}

// records reads the records of a file.
type records struct {
	file       *File
	in         *bufio.Reader
	key, value []byte
}

// records begins behind the magic.
func (i *File) records() *records {
	section := io.NewSectionReader(i.f, int64(len(magic)), i.Bytes-tail-int64(len(magic)))
	return &records{file: i, in: bufio.NewReaderSize(section, buffered)}
}

// next returns the next record.
func (r *records) next() (out record, err error) {
	if out.kind, err = r.in.ReadByte(); err != nil {
		return out, r.cut(err)
	}
	switch out.kind {
	case kindHeader, kindLeft, kindBucket, kindFooter, kindEntry, kindPair:
	default:
		return out, r.file.bad("is damaged: there is no record of kind %q", out.kind)
	}
	if out.key, err = r.part(&r.key); err != nil {
		return out, err
	}
	if out.kind == kindEntry || out.kind == kindPair {
		out.value, err = r.part(&r.value)
	}
	return out, err
}

// part reads a byte string.
func (r *records) part(into *[]byte) ([]byte, error) {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return nil, r.cut(err)
	}
	if n > uint64(r.file.Bytes) {
		return nil, r.file.bad("is damaged: a part of it would have %d bytes", n)
	}
	if uint64(cap(*into)) < n {
		*into = make([]byte, n)
	}
	*into = (*into)[:n]
	_, err = io.ReadFull(r.in, *into)
	return *into, r.cut(err)
}

func (r *records) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.file.bad("is damaged: its records end too early")
	}
	return err
}

// Visitor receives the contents of a file, in the order of these methods. Arguments are valid until a method returns.
type Visitor interface {
	// Left is called if the header has Trimmed. next returns the keys of the older entries that are left, in order;
	// nil: there is none any more.
	Left(next func() ([]byte, error)) error
	// Entry is called with each newer entry of the history, in order.
	Entry(key, value []byte) error
	// Bucket is called with the name of each other bucket, and Pair then with each of its elements.
	Bucket(name []byte) error
	Pair(key, value []byte) error
	// End is called last.
	End() error
}

// Visit reads a file that was checked.
func (i *File) Visit(v Visitor) error {
	r := i.records()
	if _, err := r.next(); err != nil { // the header
		return err
	}
	at, err := r.next()
	if err != nil {
		return err
	}
	if i.Trimmed {
		left := &leftOver{records: r, at: at}
		if err := v.Left(left.next); err != nil {
			return err
		}
		if at, err = left.behind(); err != nil {
			return err
		}
	}
	for ; err == nil && at.kind != kindFooter; at, err = r.next() {
		if err = visit(v, &at); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return v.End()
}

func visit(v Visitor, at *record) error {
	switch at.kind {
	case kindEntry:
		return v.Entry(at.key, at.value)
	case kindBucket:
		return v.Bucket(at.key)
	case kindPair:
		return v.Pair(at.key, at.value)
	}
	return errOrder
}

// errOrder: a checked file has its records in another order, so other software wrote it.
var errOrder = errors.New("the records of an increment are not in their order")

// leftOver reads the list of the older entries that are left.
type leftOver struct {
	records *records
	at      record // its key is the part of the list that is not read yet
	last    mvcc.Revision
	key     []byte
}

func (l *leftOver) next() ([]byte, error) {
	for l.at.kind == kindLeft && len(l.at.key) == 0 {
		var err error
		if l.at, err = l.records.next(); err != nil {
			return nil, err
		}
	}
	if l.at.kind != kindLeft {
		return nil, nil
	}
	main, n := binary.Uvarint(l.at.key)
	sub, m := binary.Uvarint(l.at.key[max(n, 0):])
	if n <= 0 || m <= 0 {
		return nil, errOrder
	}
	l.at.key = l.at.key[n+m:]
	l.last = mvcc.Revision{Main: l.last.Main + int64(main), Sub: int64(sub)}
	if l.key == nil {
		l.key = mvcc.NewRevBytes()
	}
	l.key = mvcc.RevToBytes(l.last, l.key)
	return l.key, nil
}

// behind skips the rest of the list, and returns the record behind it.
func (l *leftOver) behind() (record, error) {
	for {
		if key, err := l.next(); err != nil || key == nil {
			return l.at, err
		}
	}
}

package increment

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Error: a file is no increment, or is damaged. A retry is of no use.
type Error struct {
	File string
	What string // follows the file's name in a sentence
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s", e.File, e.What) }

// File is an open file of an increment.
type File struct {
	Header
	Footer
	// Sum is the SHA-256 at its end, in hexadecimal.
	Sum   string
	Bytes int64

	name string
	f    *os.File
}

// mostJSON bounds headers and footers, in bytes.
const mostJSON = 64 << 10

// Open opens a file and reads its header and footer. [File.Check] reads all of it. It must be closed. If the file is no
// increment, or is cut off, the error is an [*Error].
func Open(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	i := &File{name: name, f: f}
	if err := i.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return i, nil
}

// Close closes the file.
func (i *File) Close() error { return i.f.Close() }

func (i *File) bad(format string, args ...any) error {
	return &Error{i.name, fmt.Sprintf(format, args...)}
}

func (i *File) open() error {
	info, err := i.f.Stat()
	if err != nil {
		return err
	}
	i.Bytes = info.Size()
	begin := make([]byte, len(magic))
	if _, err := i.f.ReadAt(begin, 0); err != nil && err != io.EOF {
		return err
	} else if string(begin) != magic {
		return i.bad("is no increment of a backup: it begins with %q", bytes.TrimRight(begin, "\x00"))
	}
	end := make([]byte, tail)
	if i.Bytes < int64(len(magic)+tail) {
		return i.bad("is cut off: it has %d bytes", i.Bytes)
	}
	if _, err := i.f.ReadAt(end, i.Bytes-tail); err != nil {
		return err
	}
	if length := binary.BigEndian.Uint64(end); length != uint64(i.Bytes-tail) {
		return i.bad("is cut off, or damaged at its end: it has %d bytes", i.Bytes)
	}
	i.Sum = hex.EncodeToString(end[lengthBytes:])
	r := i.records()
	record, err := r.next()
	if err != nil {
		return err
	}
	if record.kind != kindHeader || json.Unmarshal(record.key, &i.Header) != nil {
		return i.bad("is damaged: it has no header")
	}
	return i.readFooter()
}

// readFooter reads the footer, which is the last record: JSON without line ends, behind its kind and its length.
func (i *File) readFooter() error {
	n := min(i.Bytes-tail, mostJSON)
	b := make([]byte, n)
	if _, err := i.f.ReadAt(b, i.Bytes-tail-n); err != nil {
		return err
	}
	for at := len(b) - 1; at >= 0; at-- {
		if b[at] != kindFooter {
			continue
		}
		length, width := binary.Uvarint(b[at+1:])
		if width > 0 && uint64(len(b)-at-1-width) == length && json.Unmarshal(b[at+1+width:], &i.Footer) == nil {
			return nil
		}
	}
	return i.bad("is damaged: it has no footer")
}

// Check reads the whole file and compares it with the SHA-256 at its end. If they differ, the error is an [*Error].
func (i *File) Check() error {
	digest := sha256.New()
	if _, err := io.Copy(digest, io.NewSectionReader(i.f, 0, i.Bytes-sha256.Size)); err != nil {
		return err
	}
	if sum := hex.EncodeToString(digest.Sum(nil)); sum != i.Sum {
		return i.bad("is damaged: its SHA-256 is %s, should be %s", sum, i.Sum)
	}
	return nil
}

package scale

import (
	"io"

	"github.com/braidlog/braid/internal/vfs"
)

// memory is a file system in memory for the log of a run. Its files have memory only for written pages, because
// segments are much longer than most runs need. Nothing is reopened.
type memory struct{ vfs.FS }

// Create implements vfs.FS.
func (m memory) Create(name string) (vfs.File, error) {
	f, err := m.FS.Create(name)
	return &memoryFile{File: f}, err
}

// memoryFile is a file of pages; pages that were never written are nil. The file below has only the name.
type memoryFile struct {
	vfs.File
	pages []*[pageBytes]byte
	size  int64
}

const pageBytes = 32 << 10

// WriteAt implements vfs.File.
func (f *memoryFile) WriteAt(b []byte, offset int64) (n int, err error) {
	for n < len(b) {
		page, at := f.page(offset+int64(n), true)
		n += copy(page[at:], b[n:])
	}
	f.size = max(f.size, offset+int64(n))
	return n, nil
}

// ReadAt implements vfs.File.
func (f *memoryFile) ReadAt(b []byte, offset int64) (n int, err error) {
	whole := len(b)
	b = b[:max(0, min(int64(whole), f.size-offset))]
	for n < len(b) {
		page, at := f.page(offset+int64(n), false)
		if page == nil {
			page = &noPage
		}
		n += copy(b[n:], page[at:])
	}
	if n < whole {
		err = io.EOF
	}
	return n, err
}

var noPage [pageBytes]byte

// page returns the page with an offset, and the position in it.
func (f *memoryFile) page(offset int64, create bool) (page *[pageBytes]byte, at int64) {
	i := int(offset / pageBytes)
	if i >= len(f.pages) {
		if !create {
			return nil, offset % pageBytes
		}
		f.pages = append(f.pages, make([]*[pageBytes]byte, i+1-len(f.pages))...)
	}
	if f.pages[i] == nil && create {
		f.pages[i] = new([pageBytes]byte)
	}
	return f.pages[i], offset % pageBytes
}

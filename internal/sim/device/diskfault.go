package device

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"syscall"
)

// PowerLost reports whether the power is lost: no write or sync succeeds any more.
func (d *Disk) PowerLost() bool { return d.PowerAt == 1 }

// failing returns the error with which this operation fails, or nil.
func (d *Disk) failing(op, name string) error {
	switch d.FailAt {
	case 0:
		return nil
	case 1:
		d.FailAt = 0
		return &os.PathError{Op: op, Path: name, Err: ErrIO}
	}
	d.FailAt--
	return nil
}

// Healthy runs do while the disk fails no operations.
func (d *Disk) Healthy(do func()) {
	at := d.FailAt
	d.FailAt = 0
	do()
	d.FailAt = at
}

// Used returns the space of all files in bytes.
func (d *Disk) Used() (bytes int) {
	for _, n := range d.names { // any order: a sum
		bytes += n.space()
	}
	return bytes
}

// Space returns the space of a file in bytes; 0 if there is no such file.
func (d *Disk) Space(name string) int {
	if n := d.names[clean(name)]; n != nil {
		return n.space()
	}
	return 0
}

// Size returns the length of a file in bytes; 0 if there is no such file.
func (d *Disk) Size(name string) int {
	if n := d.names[clean(name)]; n != nil {
		return len(n.data)
	}
	return 0
}

// Has reports whether there is a file or directory of this name.
func (d *Disk) Has(name string) bool { return d.names[clean(name)] != nil }

// Synced reports whether everything that was written to a file is durable. The file must exist.
func (d *Disk) Synced(name string) bool { return len(d.names[clean(name)].undo) == 0 }

// Flip flips a bit of a file's byte at an offset, durably. The file must have that byte.
func (d *Disk) Flip(name string, at int, bit byte) { d.names[clean(name)].data[at] ^= bit }

func (n *inode) space() int { return max(n.held, len(n.data)) }

// grow returns an error if the disk is too full for a file of this many bytes.
func (d *Disk) grow(f *file, op string, bytes int) error {
	if more := bytes - f.n.space(); d.Full && more > 0 && d.Used()+more > d.Capacity {
		return &os.PathError{Op: op, Path: f.name, Err: syscall.ENOSPC}
	}
	return nil
}

// Copy returns a disk with the same files, without failures. Everything that was written is durable on it. The disk's
// member must be stopped.
func (d *Disk) Copy() *Disk {
	out := NewDisk()
	out.Written = d.Written
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		n := *d.names[name]
		n.data, n.undo = slices.Clone(n.data), nil
		out.names[name] = &n
	}
	return out
}

// Images returns two possible disks after a power failure: one with only the synced bytes, and one with all written
// bytes. A log's record of its durable end may be unsynced, and removed files may still have their names.
func (d *Disk) Images() []*Disk { return []*Disk{d.image(false), d.image(true)} }

func (d *Disk) image(all bool) *Disk {
	out, keep := NewDisk(), 0
	if all {
		keep = len(d.journal)
	}
	for name, n := range d.without(keep) {
		c := &inode{dir: n.dir, data: bytes.Clone(n.data), held: n.held, fresh: n.fresh}
		if !all {
			c.revert(n.undo, 0)
		}
		out.names[name] = c
	}
	return out
}

// Decay flips a bit of each copy of these bytes in a directory's files. It reports whether there was one. It does not
// touch bytes that are not synced.
func (d *Disk) Decay(dir string, what []byte, at int, bit byte) bool {
	found := false
	for _, name := range d.Names(dir) {
		n := d.names[path.Join(dir, name)]
		for from := 0; !n.dir; {
			i := bytes.Index(n.data[from:], what)
			if i < 0 {
				break
			}
			i += from
			from = i + len(what)
			if n.writing(i, from) {
				return false
			}
			n.data[i+at] ^= bit
			found = true
		}
	}
	return found
}

// writing reports whether some of these bytes are not synced.
func (n *inode) writing(from, to int) bool {
	for _, w := range n.undo {
		if w.off < to && from < w.off+w.n {
			return true
		}
	}
	return false
}

// Spoil flips a bit of each copy of these bytes in a directory's files. It reports whether there was one. It does not
// touch the bytes of the last sync: at the end of a log damaged bytes look like bytes that were never durable.
func (d *Disk) Spoil(dir string, what []byte, rng *rand.Rand) bool {
	type place struct {
		n  *inode
		at int
	}
	var found []place
	for _, name := range d.Names(dir) {
		n := d.names[path.Join(dir, name)]
		for from := 0; !n.dir; {
			i := bytes.Index(n.data[from:], what)
			if i < 0 {
				break
			}
			if from += i + len(what); from > n.fresh || len(n.undo) > 0 {
				return false
			}
			found = append(found, place{n, from - len(what)})
		}
	}
	at, bit := rng.IntN(len(what)), byte(1)<<rng.IntN(8)
	for _, f := range found {
		f.n.data[f.at+at] ^= bit
	}
	return len(found) > 0
}

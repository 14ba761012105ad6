package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/braidlog/braid/internal/vfs"
)

// disk is a file system that can lose power. It keeps apart what was written and what was synced:
// contents for each file, names for each directory. crash returns the disk that the member's next
// life finds. All that was synced is on it, and of the rest what the seed left.
//
// It is a vfs.FS like the one in production, so the log runs on it unchanged. Unlike the one
// in memory of package vfs it tears writes at any byte, and can fail operations.
type disk struct {
	names map[string]*inode // by cleaned path
	// journal is the changes of names that are not synced, in order. Changes of names reach the
	// disk in order, as on file systems with a journal.
	journal []renaming
	locked  map[string]bool
	// failSync makes every sync fail, as on a disk that is broken.
	failSync bool
	// full: files take no more than so many bytes together.
	full     bool
	capacity int
	short    shortage
	// copies: then writes to files of the log and of the bodies fail too.
	copies bool
	// power, if > 0, says at which of the next writes and syncs the power fails; 1 is the next.
	power int
	// ills, if > 0, says which of the next operations fails; 1 is the next.
	ills    int
	written int64 // bytes, over the disk's life
}

// renaming is one atomic change of names. In it nil means that there is no such file.
type renaming struct{ changes []nameChange }

type nameChange struct {
	name   string
	before *inode
	after  *inode
}

// inode is a file's content, or a directory.
type inode struct {
	dir  bool
	data []byte
	// held is how many bytes of space the file has, if these are more than it has data.
	held int
	// undo is the writes since the last sync, in order, with the bytes that they replaced.
	undo []overwrite
	// fresh is the lowest offset of the writes that the last sync made durable.
	fresh int
}

type overwrite struct {
	off, n  int
	old     []byte // what stood there
	oldSize int    // the file's size before
}

var (
	errSync  = errors.New("simulated I/O error on sync")
	errPower = errors.New("simulated loss of power")
)

// draw counts one operation against power, and fails if the power is gone.
func (d *disk) draw() error {
	if d.power == 1 {
		return errPower
	}
	d.power = max(0, d.power-1)
	return nil
}

func newDisk() *disk {
	return &disk{names: map[string]*inode{"/": {dir: true}, dataDir: {dir: true}}, locked: map[string]bool{}}
}

func clean(name string) string { return path.Clean("/" + name) }

func notExist(op, name string) error { return &os.PathError{Op: op, Path: name, Err: os.ErrNotExist} }

func (d *disk) set(changes ...nameChange) {
	for i := range changes {
		c := &changes[i]
		c.before = d.names[c.name]
		if c.after == nil {
			delete(d.names, c.name)
		} else {
			d.names[c.name] = c.after
		}
	}
	d.journal = append(d.journal, renaming{changes})
}

// crash returns the disk that is left when power is lost at this moment.
func (d *disk) crash(rng *rand.Rand) *disk {
	out := newDisk()
	out.full, out.copies, out.capacity = d.full, d.copies, d.capacity
	keep := rng.IntN(len(d.journal) + 1)
	if rng.IntN(3) == 0 {
		keep = 0
	}
	names := d.without(keep)
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted) // chance is drawn in this order
	for _, name := range sorted {
		if parent := out.names[path.Dir(name)]; parent != nil && parent.dir {
			out.names[name] = names[name].crash(rng)
		}
	}
	out.capacity = max(out.capacity, out.used()) // nobody could take the space of files whose end was not durable
	return out
}

// without is the names as they were before change number keep and all later ones.
func (d *disk) without(keep int) map[string]*inode {
	names := make(map[string]*inode, len(d.names))
	for name, n := range d.names {
		names[name] = n
	}
	for i := len(d.journal) - 1; i >= keep; i-- {
		for _, c := range slices.Backward(d.journal[i].changes) {
			if c.before == nil {
				delete(names, c.name)
			} else {
				names[c.name] = c.before
			}
		}
	}
	return names
}

// crash returns what is left of a file after a loss of power: all that was synced, and of the later
// writes one of four things. These are nothing, all, the first ones with the last torn at any byte,
// or some of their sectors.
func (n *inode) crash(rng *rand.Rand) *inode {
	out := &inode{dir: n.dir, data: slices.Clone(n.data), held: n.held, fresh: n.fresh}
	if n.dir || len(n.undo) == 0 {
		return out
	}
	switch rng.IntN(4) {
	case 0:
		out.revert(n.undo, 0)
	case 1:
		k := rng.IntN(len(n.undo))
		out.revert(n.undo, k+1)
		w := n.undo[k]
		fresh := slices.Clone(out.data[w.off : w.off+w.n])
		out.revert(n.undo[:k+1], k)
		out.put(w.off, fresh[:rng.IntN(w.n+1)])
	case 2:
		out.revert(n.undo, 0)
		out.sectors(n, rng)
	}
	return out
}

// revert takes back the writes from the given number on.
func (n *inode) revert(undo []overwrite, from int) {
	for i := len(undo) - 1; i >= from; i-- {
		copy(n.data[undo[i].off:], undo[i].old)
		n.data = n.data[:undo[i].oldSize]
	}
}

const sector = 512

// sectors copies some of the sectors that were written to since the last sync; chance decides for
// each.
func (n *inode) sectors(now *inode, rng *rand.Rand) {
	for _, w := range now.undo {
		for at := w.off / sector * sector; at < w.off+w.n; at += sector {
			if end := min(at+sector, len(now.data)); at < end && rng.IntN(2) == 0 {
				n.put(at, now.data[at:end])
			}
		}
	}
}

// put writes without noting it in undo.
func (n *inode) put(off int, p []byte) {
	if len(p) == 0 {
		return
	}
	if grow := off + len(p) - len(n.data); grow > 0 {
		n.data = append(n.data, make([]byte, grow)...)
	}
	copy(n.data[off:], p)
}

func (n *inode) write(off int, p []byte) {
	w := overwrite{off: off, n: len(p), oldSize: len(n.data)}
	if off < len(n.data) {
		w.old = slices.Clone(n.data[off:min(off+len(p), len(n.data))])
	}
	n.undo = append(n.undo, w)
	n.put(off, p)
}

// file is an open file.
type file struct {
	d    *disk
	n    *inode
	name string
	pos  int
}

func (f *file) Close() error { return nil }

func (f *file) Read(p []byte) (int, error) {
	k, err := f.ReadAt(p, int64(f.pos))
	f.pos += k
	if k > 0 && err == io.EOF {
		err = nil
	}
	return k, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if err := f.d.ail("read", f.name); err != nil {
		return 0, err
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	k := copy(p, f.n.data[off:])
	if k < len(p) {
		return k, io.EOF
	}
	return k, nil
}

func (f *file) Write(p []byte) (int, error) {
	k, err := f.WriteAt(p, int64(f.pos))
	f.pos += k
	return k, err
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if err := f.d.ail("write", f.name); err != nil {
		return 0, err
	}
	if f.d.full && f.d.copies && (strings.HasPrefix(f.name, logDir) || strings.HasPrefix(f.name, bodyDir)) {
		return 0, &os.PathError{Op: "write", Path: f.name, Err: syscall.ENOSPC}
	}
	if err := f.d.grow(f, "write", int(off)+len(p)); err != nil {
		return 0, err
	}
	if err := f.d.draw(); err != nil {
		return 0, err
	}
	f.n.write(int(off), p)
	f.d.written += int64(len(p))
	return len(p), nil
}

func (f *file) Sync() error {
	if f.d.failSync {
		return errSync
	}
	if err := f.d.draw(); err != nil {
		return err
	}
	if f.n.dir {
		f.d.syncNames(clean(f.name))
	}
	for i, w := range f.n.undo {
		if i == 0 || w.off < f.n.fresh {
			f.n.fresh = w.off
		}
	}
	f.n.undo = nil
	return nil
}

// spoil flips a bit of these bytes wherever they stand in a directory's files. It reports whether
// it did. It does not touch what was synced last: at the end of a log nobody can tell damaged bytes
// from bytes that were never durable.
func (d *disk) spoil(dir string, what []byte, rng *rand.Rand) bool {
	type place struct {
		n  *inode
		at int
	}
	var found []place
	for _, name := range d.children(dir) {
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

// syncNames makes the names in a directory durable.
func (d *disk) syncNames(dir string) {
	d.journal = slices.DeleteFunc(d.journal, func(r renaming) bool {
		return path.Dir(r.changes[0].name) == dir
	})
}

func (f *file) SyncData() error { return f.Sync() }

func (f *file) Preallocate(off, length int64) error {
	if err := f.d.grow(f, "preallocate", int(off+length)); err != nil {
		return err
	}
	f.n.held = max(f.n.held, int(off+length))
	return nil
}

func (f *file) Stat() (os.FileInfo, error) {
	if err := f.d.ail("stat", f.name); err != nil {
		return nil, err
	}
	return fileInfo{path.Base(f.name), f.n}, nil
}

type fileInfo struct {
	name string
	n    *inode
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return int64(len(i.n.data)) }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.n.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() os.FileMode {
	if i.n.dir {
		return os.ModeDir | 0o755
	}
	return 0o644
}

// The file system, as vfs.FS.

func (d *disk) Create(name string) (vfs.File, error) {
	n := &inode{}
	if err := d.ail("create", name); err != nil {
		return nil, err
	}
	if err := d.enter("create", name, n); err != nil {
		return nil, err
	}
	return &file{d: d, n: n, name: name}, nil
}

func (d *disk) enter(op, name string, n *inode) error {
	name = clean(name)
	if parent := d.names[path.Dir(name)]; parent == nil || !parent.dir {
		return notExist(op, name)
	}
	d.set(nameChange{name: name, after: n})
	return nil
}

func (d *disk) Open(name string) (vfs.File, error) {
	if err := d.ail("open", name); err != nil {
		return nil, err
	}
	n := d.names[clean(name)]
	if n == nil {
		return nil, notExist("open", name)
	}
	return &file{d: d, n: n, name: name}, nil
}

func (d *disk) OpenReadWrite(name string) (vfs.File, error) {
	if d.names[clean(name)] == nil {
		return d.Create(name)
	}
	return d.Open(name)
}

func (d *disk) OpenDir(name string) (vfs.File, error) { return d.Open(name) }

func (d *disk) Remove(name string) error {
	if err := d.ail("remove", name); err != nil {
		return err
	}
	name = clean(name)
	n := d.names[name]
	if n == nil {
		return notExist("remove", name)
	}
	if n.dir && len(d.children(name)) > 0 {
		return &os.PathError{Op: "remove", Path: name, Err: errors.New("directory not empty")}
	}
	d.set(nameChange{name: name})
	return nil
}

func (d *disk) RemoveAll(name string) error {
	name = clean(name)
	for _, child := range d.children(name) {
		if err := d.RemoveAll(path.Join(name, child)); err != nil {
			return err
		}
	}
	if d.names[name] != nil {
		d.set(nameChange{name: name})
	}
	return nil
}

func (d *disk) Rename(oldname, newname string) error {
	if err := d.ail("rename", oldname); err != nil {
		return err
	}
	oldname, newname = clean(oldname), clean(newname)
	n := d.names[oldname]
	if n == nil {
		return notExist("rename", oldname)
	}
	d.set(nameChange{name: newname, after: n}, nameChange{name: oldname})
	return nil
}

func (d *disk) MkdirAll(dir string, perm os.FileMode) error {
	dir = clean(dir)
	if n := d.names[dir]; n != nil {
		if !n.dir {
			return &os.PathError{Op: "mkdir", Path: dir, Err: errors.New("not a directory")}
		}
		return nil
	}
	if err := d.MkdirAll(path.Dir(dir), perm); err != nil {
		return err
	}
	return d.enter("mkdir", dir, &inode{dir: true})
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

func (d *disk) Lock(name string) (io.Closer, error) {
	name = clean(name)
	if d.locked[name] {
		return nil, fmt.Errorf("lock %s: held by this process", name)
	}
	if d.names[name] == nil {
		if err := d.enter("lock", name, &inode{}); err != nil {
			return nil, err
		}
	}
	d.locked[name] = true
	return unlock(func() { delete(d.locked, name) }), nil
}

func (d *disk) children(dir string) []string {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	var out []string
	for name := range d.names {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && !strings.Contains(rest, "/") {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

func (d *disk) List(dir string) ([]string, error) {
	if err := d.ail("list", dir); err != nil {
		return nil, err
	}
	dir = clean(dir)
	if n := d.names[dir]; n == nil || !n.dir {
		return nil, notExist("list", dir)
	}
	return d.children(dir), nil
}

func (d *disk) Stat(name string) (os.FileInfo, error) {
	if err := d.ail("stat", name); err != nil {
		return nil, err
	}
	n := d.names[clean(name)]
	if n == nil {
		return nil, notExist("stat", name)
	}
	return fileInfo{path.Base(clean(name)), n}, nil
}

func (d *disk) FreeBytes(string) (uint64, error) {
	if d.full {
		return uint64(max(0, d.capacity-d.used())), nil
	}
	return 1 << 40, nil
}

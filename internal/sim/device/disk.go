package device

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/braidlog/braid/internal/vfs"
)

// Disk is a file system that can lose power. It distinguishes written from synced content for each file, and written
// from synced names for each directory. Crash returns the disk after a power failure: it has everything that was
// synced, and a random part of the rest. Kill returns it after the end of a process whose machine runs on: it has
// everything, and a later power failure may still lose the rest.
//
// It implements vfs.FS, so the log of production runs on it unchanged. Unlike the in-memory file system of package
// vfs it tears writes at any byte, and can fail operations. It is for one goroutine.
type Disk struct {
	names map[string]*inode // by cleaned path
	// journal has the unsynced changes of names, in order. They reach the disk in order, as on file systems with a
	// journal.
	journal []renaming
	locked  map[string]bool

	// FailSync makes every sync fail. As on Linux, what was to become durable stays readable after Kill, and no later
	// sync makes it durable unless it is written again.
	FailSync bool
	// Full: all files together have at most Capacity bytes.
	Full     bool
	Capacity int
	// CopyOnWrite are directories whose files cannot be overwritten while the disk is full.
	CopyOnWrite []string
	// PowerAt, if > 0, is the number of the write or sync at which the power fails; 1 is the next one.
	PowerAt int
	// FailAt, if > 0, is the number of the operation that fails; 1 is the next one.
	FailAt int
	// Written is the number of bytes that were written to the disk. Copies for another member start with the same
	// number, and disks after a crash with 0.
	Written int64
}

// renaming is one atomic change of names. nil: there is no such file.
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
	// held is the space of the file in bytes, if it is larger than its data.
	held int
	// undo has the writes since the last sync, in order, with the bytes that they replaced.
	undo []overwrite
	// failed is how many of them there were when a sync failed.
	failed int
	// fresh is the lowest offset of the writes of the last sync.
	fresh int
}

type overwrite struct {
	off, n  int
	old     []byte // the replaced bytes
	oldSize int    // the file's size before; < 0: it stays as it is
	// stuck: a sync of it failed, in a process that ended. It is within one page.
	stuck bool
}

// Root is the directory that a new disk has.
const Root = "/data"

// The errors of operations. A member that gets one of them stops, and may start again.
var (
	ErrSync  = errors.New("simulated I/O error on sync")                 // FailSync is set
	ErrPower = errors.New("simulated loss of power")                     // all writes and syncs after PowerAt
	ErrIO    = errors.New("simulated I/O error: " + syscall.EIO.Error()) // the operation of FailAt
)

// usePower counts one write or sync. It fails if the power is lost.
func (d *Disk) usePower() error {
	if d.PowerAt == 1 {
		return ErrPower
	}
	d.PowerAt = max(0, d.PowerAt-1)
	return nil
}

// NewDisk returns a disk with the directory Root and no files.
func NewDisk() *Disk {
	return &Disk{names: map[string]*inode{"/": {dir: true}, Root: {dir: true}}, locked: map[string]bool{}}
}

func clean(name string) string { return path.Clean("/" + name) }

func notExist(op, name string) error { return &os.PathError{Op: op, Path: name, Err: os.ErrNotExist} }

func (d *Disk) set(changes ...nameChange) {
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

// Crash returns the disk after a power failure at this moment.
func (d *Disk) Crash(rng *rand.Rand) *Disk {
	out := NewDisk()
	out.Full, out.CopyOnWrite, out.Capacity = d.Full, d.CopyOnWrite, d.Capacity
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
	out.Capacity = max(out.Capacity, out.Used()) // files with an end that was not durable still take their space
	return out
}

// Kill returns the disk after the end of a process whose machine runs on. What was not synced is not durable yet.
func (d *Disk) Kill() *Disk {
	out := NewDisk()
	out.Full, out.CopyOnWrite, out.Capacity = d.Full, d.CopyOnWrite, d.Capacity
	copies := map[*inode]*inode{nil: nil}
	copied := func(n *inode) *inode {
		if _, ok := copies[n]; !ok {
			copies[n] = n.kill()
		}
		return copies[n]
	}
	for name, n := range d.names {
		out.names[name] = copied(n)
	}
	for _, r := range d.journal {
		changes := slices.Clone(r.changes)
		for i := range changes {
			changes[i].before, changes[i].after = copied(changes[i].before), copied(changes[i].after)
		}
		out.journal = append(out.journal, renaming{changes})
	}
	return out
}

// without returns the names before change number keep and all later ones.
func (d *Disk) without(keep int) map[string]*inode {
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

// crash returns a file after a power failure: everything that was synced, and of the later writes none, all, the
// first ones with the last torn at any byte, or some of their sectors.
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

// revert undoes the writes from the given number on.
func (n *inode) revert(undo []overwrite, from int) {
	for i := len(undo) - 1; i >= from; i-- {
		copy(n.data[undo[i].off:], undo[i].old)
		if undo[i].oldSize >= 0 {
			n.data = n.data[:undo[i].oldSize]
		}
	}
}

const sector = 512

// sectors copies some of the sectors that were written to since the last sync; each is drawn.
func (n *inode) sectors(now *inode, rng *rand.Rand) {
	for _, w := range now.undo {
		for at := w.off / sector * sector; at < w.off+w.n; at += sector {
			if end := min(at+sector, len(now.data)); at < end && rng.IntN(2) == 0 {
				n.put(at, now.data[at:end])
			}
		}
	}
}

// put writes without a record in undo.
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
	n.dirty(off, len(p))
	w := overwrite{off: off, n: len(p), oldSize: len(n.data)}
	if off < len(n.data) {
		w.old = slices.Clone(n.data[off:min(off+len(p), len(n.data))])
	}
	n.undo = append(n.undo, w)
	n.put(off, p)
}

const page = 4096

// kill returns a file after the end of a process whose machine runs on.
func (n *inode) kill() *inode {
	out := &inode{dir: n.dir, data: slices.Clone(n.data), held: n.held, fresh: n.fresh}
	for _, w := range n.undo[:n.failed] {
		out.undo = append(out.undo, w.clean()...)
	}
	out.undo = append(out.undo, n.undo[n.failed:]...)
	return out
}

// clean returns a write whose sync failed, by pages. If they are reverted, the file keeps its size.
func (w overwrite) clean() (pieces []overwrite) {
	old := append(slices.Clone(w.old), make([]byte, w.n-len(w.old))...)
	for at := 0; at < w.n; {
		end := min((w.off+at)/page*page+page-w.off, w.n)
		pieces = append(pieces, overwrite{off: w.off + at, n: end - at, old: old[at:end], oldSize: -1, stuck: true})
		at = end
	}
	return pieces
}

// dirty notes a write to some pages. The next sync makes all of their bytes durable.
func (n *inode) dirty(off, length int) {
	for i := range n.undo {
		if w := &n.undo[i]; w.off/page*page < off+length && off < w.off/page*page+page {
			w.stuck = false
		}
	}
}

// syncNames makes the names in a directory durable.
func (d *Disk) syncNames(dir string) {
	d.journal = slices.DeleteFunc(d.journal, func(r renaming) bool {
		return path.Dir(r.changes[0].name) == dir
	})
}

// The methods below implement vfs.FS.

func (d *Disk) Create(name string) (vfs.File, error) {
	n := &inode{}
	if err := d.failing("create", name); err != nil {
		return nil, err
	}
	if err := d.enter("create", name, n); err != nil {
		return nil, err
	}
	return &file{d: d, n: n, name: name}, nil
}

func (d *Disk) enter(op, name string, n *inode) error {
	name = clean(name)
	if parent := d.names[path.Dir(name)]; parent == nil || !parent.dir {
		return notExist(op, name)
	}
	d.set(nameChange{name: name, after: n})
	return nil
}

func (d *Disk) Open(name string) (vfs.File, error) {
	if err := d.failing("open", name); err != nil {
		return nil, err
	}
	n := d.names[clean(name)]
	if n == nil {
		return nil, notExist("open", name)
	}
	return &file{d: d, n: n, name: name}, nil
}

func (d *Disk) OpenReadWrite(name string) (vfs.File, error) {
	if d.names[clean(name)] == nil {
		return d.Create(name)
	}
	return d.Open(name)
}

func (d *Disk) OpenDir(name string) (vfs.File, error) { return d.Open(name) }

func (d *Disk) Remove(name string) error {
	if err := d.failing("remove", name); err != nil {
		return err
	}
	name = clean(name)
	n := d.names[name]
	if n == nil {
		return notExist("remove", name)
	}
	if n.dir && len(d.Names(name)) > 0 {
		return &os.PathError{Op: "remove", Path: name, Err: errors.New("directory not empty")}
	}
	d.set(nameChange{name: name})
	return nil
}

func (d *Disk) RemoveAll(name string) error {
	name = clean(name)
	for _, child := range d.Names(name) {
		if err := d.RemoveAll(path.Join(name, child)); err != nil {
			return err
		}
	}
	if d.names[name] != nil {
		d.set(nameChange{name: name})
	}
	return nil
}

func (d *Disk) Rename(oldname, newname string) error {
	if err := d.failing("rename", oldname); err != nil {
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

func (d *Disk) MkdirAll(dir string, perm os.FileMode) error {
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

func (d *Disk) Lock(name string) (io.Closer, error) {
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

// Names returns the names in a directory, in order, even if an operation is to fail.
func (d *Disk) Names(dir string) []string {
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

func (d *Disk) List(dir string) ([]string, error) {
	if err := d.failing("list", dir); err != nil {
		return nil, err
	}
	dir = clean(dir)
	if n := d.names[dir]; n == nil || !n.dir {
		return nil, notExist("list", dir)
	}
	return d.Names(dir), nil
}

func (d *Disk) Stat(name string) (os.FileInfo, error) {
	if err := d.failing("stat", name); err != nil {
		return nil, err
	}
	n := d.names[clean(name)]
	if n == nil {
		return nil, notExist("stat", name)
	}
	return fileInfo{path.Base(clean(name)), n}, nil
}

func (d *Disk) FreeBytes(string) (uint64, error) {
	if d.Full {
		return uint64(max(0, d.Capacity-d.Used())), nil
	}
	return 1 << 40, nil
}
